"""A simulated GPU host: a real sshd, real processes, real HTTP; only the GPUs and the clock are made up.

``keeper`` starts the host and never leaves a process or a file of it behind, ``host`` is its first
process (what a kernel calls init) with the ``sshd``, ``engine`` is the inference server that runs on
it, ``scenarios`` say what befalls that server, ``adapter`` tells the agent about the made-up part,
and ``simulate`` starts it all from a program or a test. Linux only.
"""
