"""On a machine with a GPU and torch: what a dead server leaves behind, cleaned up by ``specdash clean``.

    python tests/gpu/night.py

Three processes are made: one that forked without exec after CUDA was initialised and whose parent is then
killed (the child keeps the driver's files, and with them the parent's memory); one whose main thread is gone
while another lives; and a monitor that holds the device through NVML. Then ``specdash`` looks, plans and
cleans. Afterwards the memory must be back at the baseline and the monitor alive. Prints a report; exit
code 1 where that is not so. Only processes made here are touched.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

GIB = 1 << 30

FORKED = """
import os, sys, time, torch
block = torch.empty(20 << 30, dtype=torch.uint8, device="cuda"); torch.cuda.synchronize()
if os.fork() == 0:
    print("child", os.getpid(), flush=True)
    time.sleep(3600); os._exit(0)
time.sleep(3600)
"""

HEADLESS = """
import ctypes, threading, time, os, torch
block = torch.empty(5 << 30, dtype=torch.uint8, device="cuda"); torch.cuda.synchronize()
def live():
    print("child", os.getpid(), flush=True)
    time.sleep(3600)
threading.Thread(target=live).start(); time.sleep(1)
ctypes.CDLL(None).syscall(60, 0)
"""

MONITOR = """
import time, pynvml
pynvml.nvmlInit(); card = pynvml.nvmlDeviceGetHandleByIndex(0)
print("child", 0, flush=True)
while True:
    pynvml.nvmlDeviceGetMemoryInfo(card); time.sleep(1)
"""


def start(program: str) -> tuple[subprocess.Popen[str], int]:
    """Run it in a session of its own until it says that it is there."""
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    word = process.stdout.readline().split()
    return process, int(word[1]) if len(word) > 1 else 0


def specdash(*arguments: str) -> tuple[int, Any, str]:
    """One command; exit code, document, narration."""
    done = subprocess.run(
        [sys.executable, "-m", "specdash", *arguments], capture_output=True, text=True, timeout=300
    )
    return done.returncode, json.loads(done.stdout) if done.stdout.strip() else None, done.stderr


def used_mib() -> int | None:
    """As specdash sees it."""
    used: int | None = specdash("status", "local", "--json")[1]["gpus"][0]["used_mib"]
    return used


def state_of(pid: int) -> str:
    """R S D T Z, or gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "gone"


def main() -> int:
    """Make the leftovers, look, clean, look again."""
    os.environ.setdefault("XDG_STATE_HOME", tempfile.mkdtemp())
    baseline = used_mib()
    print("baseline", baseline, "MiB")
    monitor, _ = start(MONITOR)
    forked, child = start(FORKED)
    os.kill(forked.pid, signal.SIGKILL)
    forked.wait()
    headless, _ = start(HEADLESS)
    time.sleep(3)
    print(
        "held",
        used_mib(),
        "MiB by the child",
        child,
        "and the headless",
        headless.pid,
        state_of(headless.pid),
    )
    code, status, _ = specdash("status", "local", "--json")
    print(
        "status exit",
        code,
        "owners",
        status["gpus"][0]["processes"],
        "orphan",
        status["gpus"][0]["orphan_mib"],
    )
    code, plan, words = specdash("clean", "local", "--dry-run", "--json")
    print("dry run exit", code)
    for step in (plan or {}).get("plan", ()):
        print("  ", step["title"], step["preview"])
    began = time.monotonic()
    code, done, words = specdash("clean", "local", "--yes", "--json")
    print("clean exit", code, f"after {time.monotonic() - began:.1f} s")
    for step in (done or {}).get("plan", ()):
        print("  ", step["state"], step["title"], "|", step["evidence"])
    print(words)
    after = used_mib()
    alive = monitor.poll() is None
    print("after", after, "MiB; monitor", "alive" if alive else "DEAD", "; child", state_of(child))
    for process in (monitor, headless):
        if process.poll() is None:
            process.kill()
    good = after is not None and baseline is not None and after <= baseline + 128 and alive
    print("GOOD" if good else "NOT GOOD")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
