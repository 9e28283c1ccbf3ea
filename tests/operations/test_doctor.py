"""doctor ends with what can be seen and done there, and why not the rest."""

from __future__ import annotations

import base64
from typing import Any, cast

import msgspec
import pytest

from specdash.errors import RequestError
from specdash.intake import ownengines, rules
from specdash.monitor.state import HostFacts, HostState, Link
from specdash.operations import doctor
from specdash.operations.checks import Line, passes
from specdash.remote.link import NO_SUDO

HOST = HostFacts(name="box", boot="b", user="op", uid=1000, python="3.11.2", agent_pid=7, watch_only=False)
LIVE = HostState(target="box", host=HOST, link=Link(state="live"))


class Deaf:
    """A host that does nothing for us."""

    def __init__(self, state: HostState, reason: str) -> None:
        self.state = state
        self._reason = reason

    async def ask(self, *_: Any, **__: Any) -> Any:
        raise RequestError(self._reason)


async def told(state: HostState, reason: str = "no", *, watch: bool = False) -> dict[str, list[Line]]:
    """The lines by their key."""
    found: dict[str, list[Line]] = {}
    for line in await doctor.examine(cast(Any, Deaf(state, reason)), watch=watch):
        found.setdefault(line.key, []).append(line)
    return found


class Bus(Deaf):
    """A host with these devices on its PCI bus, and these files."""

    def __init__(self, devices: str, *files: str) -> None:
        super().__init__(msgspec.structs.replace(LIVE, gpu_error=NO_LIBRARY), "no")
        self._devices, self._files = devices, files

    async def ask(self, request: Any, **more: Any) -> Any:
        if request["r"] == "read_file" and request["path"] == doctor.PCI_BUS:
            data = base64.b64encode(self._devices.encode()).decode()
            return {"exists": bool(data), "data": data}
        if request["r"] == "stat_files":
            return {"files": [{"path": path, "exists": path in self._files} for path in request["paths"]]}
        return await super().ask(request, **more)


NO_LIBRARY = "no NVIDIA driver library (libnvidia-ml.so.1)"
DISK, CARD = "0008\t1af41042\t0\tvirtio-pci\n", "0100\t10de2bb5\t0\n"


@pytest.mark.parametrize(
    ("host", "mark"),
    [
        (Bus(DISK), "ok"),
        (Bus(DISK + CARD), "error"),
        (Bus(DISK, "/dev/nvidiactl"), "error"),
        (Bus(DISK, "/dev/dxg"), "error"),
        (Bus(""), "error"),
        (Deaf(msgspec.structs.replace(LIVE, gpu_error=NO_LIBRARY), "no Python there"), "error"),
    ],
)
async def test_a_machine_without_a_card_is_not_broken_and_one_with_a_card_and_no_driver_is(
    host: Deaf, mark: str
) -> None:
    lines = await doctor.examine(cast(Any, host), watch=False)
    gpus = next(line for line in lines if line.key == "gpus")
    assert gpus.mark == mark
    assert ("no NVIDIA card" in gpus.seen) is (mark == "ok")
    assert passes(gpus, ()) is (mark == "ok"), "the exit code goes by this"


async def test_without_python_it_says_what_is_seen_all_the_same_and_what_is_not() -> None:
    host = msgspec.structs.replace(HOST, python="", watch_only=True)
    lines = await told(msgspec.structs.replace(LIVE, host=host), "no Python there: nothing can be done")
    assert lines["python"][0].mark == "warning"
    assert "nvidia-smi" in lines["python"][0].seen
    assert "install python3" in (lines["python"][0].do or "")
    assert [lines[key][0].mark for key in ("acting", "kernel", "holders")] == ["unknown"] * 3
    assert "needs Python" in lines["acting"][0].seen


async def test_a_refused_sudo_is_a_line_with_sudos_own_reason() -> None:
    note = f"{NO_SUDO}: op is not in the sudoers file"
    lines = await told(msgspec.structs.replace(LIVE, notes=("something else", note)))
    (line,) = lines["sudo"]
    assert (line.mark, line.seen) == ("warning", "op is not in the sudoers file")


async def test_an_unreadable_kernel_log_says_what_stays_unseen() -> None:
    lines = await told(msgspec.structs.replace(LIVE, kernel_denied="permission denied"))
    assert "Xid reports" in lines["kernel"][0].seen
    assert (await told(LIVE))["kernel"][0].mark == "ok"


@pytest.mark.parametrize("watch", [False, True])
async def test_what_was_asked_for_is_no_fault(watch: bool) -> None:
    acting = (await told(LIVE, watch=watch))["acting"][0]
    assert acting.mark == "ok"
    assert ("watch only" in acting.seen) is watch


async def test_engines_that_are_known_and_files_that_are_bad(monkeypatch: pytest.MonkeyPatch) -> None:
    own = ownengines.OwnEngines(problems=("/c/x.toml: line 4: lines.prefix: broken",))
    monkeypatch.setattr(ownengines, "read", lambda: own)
    rules.default_rules.cache_clear()
    try:
        good, bad = (await told(LIVE))["engines"]
    finally:
        rules.default_rules.cache_clear()
    assert good.seen.startswith("SGLang, vLLM, TensorRT-LLM, TGI, LMDeploy, llama.cpp")
    assert "line 4" in bad.seen
