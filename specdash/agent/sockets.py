"""Which TCP ports are listened on, and by whom: the kernel's tables and the processes' descriptors."""

import os
import re
import socket
import struct

LISTEN = re.compile(rb"^ *\d+: ([0-9A-F]+):([0-9A-F]{4}) [0-9A-F]+:0000 0A (?:\S+ +){5}(\d+)", re.M)
"""A line in state 0A: address, port, and after five more columns the inode (proc_net_tcp.rst)."""

SOCKET = re.compile(r"socket:\[(\d+)\]$")


def address(text: bytes) -> str:
    """An address of the kernel's table: 32-bit words in the machine's byte order, in hexadecimal."""
    words = [int(text[at : at + 8], 16) for at in range(0, len(text), 8)]
    packed = struct.pack("=%dI" % len(words), *words)
    return socket.inet_ntop(socket.AF_INET if len(words) == 1 else socket.AF_INET6, packed)


def listeners(proc: str) -> "dict[int, tuple[int, str]]":
    """Inode of each listening socket of this network namespace, with its port and address."""
    found = {}
    for name in ("tcp", "tcp6"):
        try:
            with open("%s/net/%s" % (proc, name), "rb") as file:
                data = file.read()
        except OSError:
            continue
        for local, port, inode in LISTEN.findall(data):
            found[int(inode)] = (int(port, 16), address(local))
    return found


def held(folder: str) -> "set[int]":
    """Inodes of the sockets behind a process's descriptors (``folder`` is /proc/PID/fd)."""
    inodes = set()
    for name in os.listdir(folder):
        try:
            match = SOCKET.match(os.readlink(folder + "/" + name))
        except OSError:
            continue
        if match:
            inodes.add(int(match.group(1)))
    return inodes
