"""The simulated inference server: real processes, a real log, real HTTP, no GPU.

It runs on the simulated host as ``python3 -m sglang.launch_server …`` and speaks as SGLang 0.5.16 was
heard to speak with EAGLE-3 on eight GPUs. Standard library only, few imports: eight ranks must weigh
next to nothing.
"""
