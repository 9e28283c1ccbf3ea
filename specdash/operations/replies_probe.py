"""What the agent's ``probe`` answers, typed: what a launch would meet."""

from __future__ import annotations

from collections.abc import Mapping

from specdash.operations.replies import Answer, Row


class Listener(Row, frozen=True, kw_only=True):
    """Who listens on a port."""

    address: str = ""


class Port(Answer, frozen=True, kw_only=True):
    """Whether a port can be had."""

    port: int
    free: bool | None = None
    lingering: int | bool = 0
    """Connections in TIME_WAIT or the like."""
    error: str | None = None
    listeners: tuple[Listener, ...] = ()


class Place(Answer, frozen=True, kw_only=True):
    """The file system that a path lies on."""

    path: str
    folder: str | None = None
    free_mib: int | None = None
    total_mib: int | None = None
    writable: bool | None = None
    error: str | None = None


class Shm(Answer, frozen=True, kw_only=True):
    """Shared memory."""

    total_mib: int | None = None
    used_mib: int | None = None


class Python(Answer, frozen=True, kw_only=True):
    """The interpreter that a server is started with."""

    version: str | None = None
    executable: str | None = None
    modules: Mapping[str, str | None] = {}
    error: str | None = None


class Probe(Answer, frozen=True, kw_only=True):
    """What a launch would meet."""

    ports: tuple[Port, ...] = ()
    paths: tuple[Place, ...] = ()
    shm: Shm | None = None
    limits: Mapping[str, tuple[int, int]] = {}
    """``nofile``, ``memlock``, ``nproc``: soft and hard; -1: none."""
    python: Python | None = None
