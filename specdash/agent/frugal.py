"""Small on somebody else's machine: hand memory back to the kernel."""


def limit_arenas() -> None:
    """Keep glibc from giving each thread a heap of its own. Must run before the first thread."""
    try:
        import ctypes

        ctypes.CDLL(None).mallopt(-8, 1)  # M_ARENA_MAX
    except Exception:
        pass  # another libc: it only costs memory


def give_back() -> None:
    """Return freed pages: compiling NVML's 8,000-line binding needs 15 MB for a moment."""
    try:
        import ctypes
        import gc

        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
    except Exception:
        pass  # another libc: it only costs memory
