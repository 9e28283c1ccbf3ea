"""The kernel's word on a dead GPU or a killed rank, joined with the server and the card it is about."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from specdash.monitor.frames import AnyFrame, Gpus, Kernel
from specdash.monitor.kernelnews import place_of
from specdash.monitor.memory import Memory
from specdash.monitor.observe import acknowledge
from specdash.monitor.samples import KernelLine
from tests.monitor.frames_of import gpus, hello, log, only_server, processes, run, server, tick
from tests.monitor.starts import ARGS, CAPTURE, LOADED, LOADING, READY

OFF_BUS = "NVRM: Xid (PCI:0000:{bus}:00): 79, pid=102, name=sglang::schedul, GPU has fallen off the bus."
OOM = "Out of memory: Killed process {pid} ({name}) total-vm:9kB, anon-rss:8kB, UID:0"


def kernel(at: float, *lines: tuple[float, str], **more: Any) -> Kernel:
    told = tuple(KernelLine(at=when, text=text, us=int(when * 1e6)) for when, text in lines)
    return Kernel(at=at, lines=told, **more)


def cards(at: float, *used_gib: float) -> Gpus:
    """GPU 0 at bus 17, GPU 1 at bus 18, …"""
    frame = gpus(at, *used_gib)
    placed = [msgspec.structs.replace(card, bus=f"00000000:{17 + card.index}:00.0") for card in frame.cards]
    return msgspec.structs.replace(frame, cards=tuple(placed))


def host(*frames: AnyFrame, **more: Any) -> Memory:
    """A server that captures on GPUs 0 and 1, and whatever comes then; GPU 2 is not its own."""
    text = ARGS + LOADING + LOADED + CAPTURE
    begun = run(hello(**more), processes(1.0, *server()), cards(2.0, 76, 76, 0), log(10.0, text, start_=True))
    return run(processes(12.0, *server()), *frames, memory=begun)


def root(memory: Memory) -> tuple[str, str]:
    found = next(one for one in only_server(memory).diagnoses if one.root)
    return found.key, found.evidence


def dead(at: float) -> list[AnyFrame]:
    return [processes(at), tick(at + 1)]


def test_a_killed_rank_is_explained_by_the_oom_killers_line() -> None:
    line = OOM.format(pid=103, name="sglang::schedul")
    left = server()[:2]
    memory = host(kernel(100.0, (99.0, line)), processes(101.0, *left), tick(102.0))
    assert only_server(memory).state == "crashed"
    assert root(memory) == ("rank_killed_by_host_oom", line)


def test_a_dead_server_is_explained_by_what_its_own_card_suffered() -> None:
    line = OFF_BUS.format(bus=18)
    memory = host(kernel(100.0, (99.0, line)), *dead(101.0))
    assert root(memory) == ("gpu_fallen_off_bus", line)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param((99.0, OFF_BUS.format(bus=19)), id="another server's card"),
        pytest.param((-50.0, OFF_BUS.format(bus=18)), id="before it was started"),
        pytest.param((300.0, OFF_BUS.format(bus=18)), id="long after it was gone"),
        pytest.param((99.0, OOM.format(pid=77, name="python3")), id="another python"),
    ],
)
def test_what_happened_to_others_or_at_another_time_explains_nothing(line: tuple[float, str]) -> None:
    memory = host(kernel(100.0, line), *dead(101.0), tick(310.0))
    keys = {one.key for one in only_server(memory).diagnoses}
    assert not keys & {"gpu_fallen_off_bus", "rank_killed_by_host_oom"}


def test_inside_a_container_a_kernels_pid_is_nobodys_and_the_name_counts() -> None:
    line = OOM.format(pid=990103, name="sglang::schedul")
    memory = host(
        kernel(100.0, (99.0, line)), processes(101.0, *server()[:2]), container="docker", host_pids=False
    )
    assert root(memory)[0] == "rank_killed_by_host_oom"


def test_what_a_server_has_outlived_is_no_reason_for_its_state() -> None:
    memory = host(kernel(20.0, (19.0, OFF_BUS.format(bus=18))), log(200.0, READY, 9999), tick(201.0))
    assert only_server(memory).state == "ready"
    later = run(*dead(400.0), memory=memory)
    assert "gpu_fallen_off_bus" not in {one.key for one in only_server(later).diagnoses}


def test_a_stall_is_explained_by_the_driver_before_anything_else() -> None:
    line = "NVRM: Xid (PCI:0000:17:00): 119, pid=102, Timeout after 6s of waiting for RPC response from GSP"
    quiet = [processes(12.0 + t, *server()) for t in range(2, 130, 2)]
    memory = host(kernel(20.0, (19.0, line)), *quiet)
    assert only_server(memory).state == "stalled"
    assert root(memory)[0] == "gsp_timeout"


def test_an_xid_is_an_alert_that_names_the_card_by_its_number() -> None:
    memory = host(kernel(100.0, (99.0, OFF_BUS.format(bus=19))))
    told = [(alert.severity, alert.text) for alert in memory.picture.alerts]
    text = "GPU 2: Xid 79, pid=102, name=sglang::schedul, GPU has fallen off the bus."
    assert told == [("error", text)]
    assert only_server(memory).state == "capturing", "that it works is still true"


def test_a_server_that_goes_on_in_spite_of_a_report_about_its_card_is_not_called_dead() -> None:
    line = "NVRM: Xid (PCI:0000:17:00): 63, pid=102, Row Remapper: pending"
    memory = host(kernel(20.0, (19.0, line)))
    assert (only_server(memory).state, len(memory.picture.alerts)) == ("capturing", 1)


def test_a_line_that_comes_before_the_cards_waits_for_their_numbers() -> None:
    memory = run(hello(), kernel(1.0, (0.5, OFF_BUS.format(bus=18))))
    assert memory.picture.alerts == ()
    assert run(cards(2.0, 0, 0), memory=memory).picture.alerts[0].text.startswith("GPU 1: ")
    dead_driver = run(Gpus(at=2.0, error="no NVIDIA driver is loaded"), memory=memory)
    assert dead_driver.picture.alerts[0].text.startswith("GPU at 0000:18:00: ")


def test_it_is_said_once_though_every_agent_tells_it_again() -> None:
    line = OFF_BUS.format(bus=19)
    first = host(kernel(100.0, (99.0, line)))
    seen = acknowledge(first, first.picture.alerts[0].key)
    again = Kernel(at=103.0, lines=(KernelLine(at=99.02, text=line, us=99_000_000),))
    assert run(hello(102.0), again, memory=seen).picture.alerts == ()
    anew = Kernel(at=104.0, lines=(*again.lines, KernelLine(at=103.5, text=line, us=103_500_000)))
    assert len(run(anew, memory=seen).picture.alerts) == 1


@pytest.mark.parametrize(
    "text",
    [
        "NVRM: Xid (PCI:0000:17:00): 45, pid=102, Ch 00000010",
        "NVRM: Xid (PCI:0000:17:00): 31, pid=102, MMU Fault",
    ],
)
def test_what_follows_every_kill_or_is_the_programs_own_fault_alarms_nobody(text: str) -> None:
    assert host(kernel(100.0, (99.0, text))).picture.alerts == ()


def test_what_happened_long_before_we_came_is_no_news() -> None:
    at = 5000.0
    lines = ((at - 3600, OFF_BUS.format(bus=17)), (at - 60, OFF_BUS.format(bus=18)))
    memory = run(hello(at), cards(at, 0, 0), kernel(at, *lines))
    assert [alert.text[:5] for alert in memory.picture.alerts] == ["GPU 1"]


def test_an_unreadable_log_is_noted_once() -> None:
    denied = kernel(1.0, denied=True, reason="/dev/kmsg: Operation not permitted")
    state = run(hello(), denied, denied).picture
    assert state.kernel_denied == "/dev/kmsg: Operation not permitted"
    assert len(state.notes) == 1
    assert "Operation not permitted" in state.notes[0]


@pytest.mark.parametrize(
    ("nvml", "kernels", "same"),
    [
        ("00000000:61:00.0", "0000:61:00", True),
        ("0000:61:00.0", "0000:61:00.0", True),
        ("00000000:61:00.0", "0000:16:00", False),
        ("00000001:61:00.0", "0000:61:00", False),
        ("00000000:0A:00.0", "0000:0a:00", True),
    ],
)
def test_nvml_and_the_kernel_write_one_address_in_two_ways(nvml: str, kernels: str, same: bool) -> None:
    assert (place_of(nvml) == place_of(kernels)) is same
    assert place_of("nonsense") is None
