"""A made-up server whose children do all that makes children hard to find: ``naughty.py TOLD DEVICE``.

It is run as a program of its own and needs nothing but the standard library. Each process writes its role
and pid into TOLD. DEVICE is a file that stands for a card, and all but those that were exec'ed keep it open.
"""

import ctypes
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

TOLD, DEVICE = sys.argv[1], sys.argv[2]
libc = ctypes.CDLL(None)


def tell(role: str) -> None:
    os.write(told, json.dumps({role: os.getpid()}).encode() + b"\n")


def rest() -> None:
    while True:
        time.sleep(60)


def stubborn() -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def child(role: str, prepare: Callable[[], object] = lambda: None, then: Callable[[], object] = rest) -> None:
    if os.fork() == 0:
        prepare()
        tell(role)
        then()
        os._exit(0)


def alone() -> None:
    os.setsid()
    stubborn()


def orphaned() -> None:
    parent = Path(f"/proc/{os.getpid()}")
    if os.fork():
        os._exit(0)
    while parent.exists():  # nobody is to meet the one in between
        time.sleep(0.005)


def twice() -> None:
    orphaned()
    stubborn()


def twice_alone() -> None:
    os.setsid()
    orphaned()
    stubborn()


def rename() -> None:
    alone()
    libc.prctl(15, b"innocent", 0, 0, 0)


def bare() -> None:
    os.execve(sys.executable, ["innocent", "-c", "import time; time.sleep(600)"], {})


def stopped() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)
    rest()


def grandchild() -> None:
    if os.fork() == 0:
        os.setsid()
        tell("grandchild")
        rest()


told = os.open(TOLD, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
card = os.open(DEVICE, os.O_RDWR)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
tell("main")
child("plain")
child("stubborn", stubborn)
child("setsid", alone)
child("double", twice)
child("double-setsid", twice_alone)
child("renamed", rename)
child("bare", alone, bare)
child("stopped", stubborn, stopped)
child("parent", grandchild)
child("forked", stubborn)
rest()
