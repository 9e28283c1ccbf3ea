"""A simulated GPU host, real in all but its GPUs and its clock.

May touch: processes, 127.0.0.1, a folder in ``/tmp``.

``keeper`` starts the host and never leaves a process or a file of it behind, ``host`` is its first
process (what a kernel calls init) with the ``sshd``, ``engine`` is the inference server that runs on
it, ``scenarios`` say what befalls that server, ``adapter`` tells the agent about the made-up part,
and ``simulate`` starts it all from a program or a test. Linux only.
"""
