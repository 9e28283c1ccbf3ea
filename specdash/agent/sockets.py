"""Which TCP ports are listened on, and by whom: the kernel's tables and the processes' descriptors."""

import os
import re
import socket
import struct

LISTEN = re.compile(rb"^ *\d+: ([0-9A-F]+):([0-9A-F]{4}) [0-9A-F]+:0000 0A (?:\S+ +){5}(\d+)", re.M)
"""A line in state 0A: address, port, and after five more columns the inode (proc_net_tcp.rst)."""

SOCKET = re.compile(r"socket:\[(\d+)\]$")

# linux/netlink.h, linux/sock_diag.h, linux/inet_diag.h
NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST_DUMP, NLMSG_DONE = 4, 20, 0x301, 3
TCP_LISTEN_ONLY = 1 << 10
HEADER = struct.Struct("=IHHII")
REQUEST = struct.Struct("=BBBBI48x")
ANSWER = struct.Struct("=BBBB2s2x16s16x12x16xI")
"""Family, state, timer, retransmissions, port, (other port), address, …, expiry to uid, inode."""
LIMIT = 2.0


def listeners(proc: str) -> "dict[int, tuple[int, str]]":
    """Inode of each listening socket of this network namespace, with its port and address.

    Asks the kernel's socket diagnosis, which looks at listeners only; reading ``/proc/net/tcp`` walks all
    connections a host could have (9 ms on a small machine) and is the way where that is not allowed.
    """
    if proc == "/proc":
        try:
            found = _ask(socket.AF_INET)
            found.update(_ask(socket.AF_INET6))
            return found
        except (OSError, struct.error):
            pass
    return _read_tables(proc)


def _ask(family: int) -> "dict[int, tuple[int, str]]":
    found: "dict[int, tuple[int, str]]" = {}
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG) as link:
        link.settimeout(LIMIT)
        body = REQUEST.pack(family, socket.IPPROTO_TCP, 0, 0, TCP_LISTEN_ONLY)
        length = HEADER.size + len(body)
        link.send(HEADER.pack(length, SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST_DUMP, 1, 0) + body)
        while True:
            data = link.recv(1 << 16)
            while data:
                length, kind = HEADER.unpack_from(data)[:2]
                if kind == NLMSG_DONE:
                    return found
                if kind != SOCK_DIAG_BY_FAMILY or length < HEADER.size:
                    raise OSError("no socket diagnosis")
                port, packed, inode = ANSWER.unpack_from(data, HEADER.size)[4:]
                width = 4 if family == socket.AF_INET else 16
                text = socket.inet_ntop(family, packed[:width])
                found[inode] = (struct.unpack(">H", port)[0], text)
                data = data[(length + 3) & ~3 :]


def _read_tables(proc: str) -> "dict[int, tuple[int, str]]":
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


def address(text: bytes) -> str:
    """An address of the kernel's table: 32-bit words in the machine's byte order, in hexadecimal."""
    words = [int(text[at : at + 8], 16) for at in range(0, len(text), 8)]
    packed = struct.pack("=%dI" % len(words), *words)
    return socket.inet_ntop(socket.AF_INET if len(words) == 1 else socket.AF_INET6, packed)


def held(folder: str) -> "frozenset[int]":
    """Inodes of the sockets behind a process's descriptors (``folder`` is /proc/PID/fd)."""
    inodes = set()
    for name in os.listdir(folder):
        try:
            match = SOCKET.match(os.readlink(folder + "/" + name))
        except OSError:
            continue
        if match:
            inodes.add(int(match.group(1)))
    return frozenset(inodes)
