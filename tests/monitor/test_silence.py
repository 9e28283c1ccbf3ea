"""What nobody could see accuses no one: lost links, clocks that differ, answers and states of yesterday."""

from __future__ import annotations

import json

import msgspec
import pytest

from specdash.monitor.frames import AnyFrame, Gpus, Link
from specdash.monitor.memory import Memory
from specdash.monitor.polling import HEALTH, LOADS
from tests.monitor.frames_of import gpus, hello, http, log, only_server, processes, run, server, tick

CAPTURE = (
    "[2026-11-02 01:00:00] server_args=ServerArgs(model_path='/models/t', tp_size=2, port=30000)\n"
    "[2026-11-02 01:00:01 TP0] Init torch distributed begin.\n"
    "[2026-11-02 01:00:02 TP0] Capture target decode CUDA graph begin. backend=full, avail mem=5 GB\n"
    "\rCapturing batches (bs=24 avail_mem=4.90 GB):  26%|##6       | 6/23 [00:05<00:14, 1.2it/s]"
)
READY = "\n[2026-11-02 01:23:00] The server is fired up and ready to roll!\n"


def begun(text: str = CAPTURE, at: float = 10.0) -> Memory:
    return run(
        hello(),
        Link(at=0.0, state="live"),
        processes(at, *server("SSS", started=at - 5)),
        log(at, text, start_=True),
        processes(at + 2, *server("SSS", started=at - 5)),
    )


def looked_at(begin: int, end: int, states: str = "SSS") -> list[AnyFrame]:
    """Processes and a tick, every second."""
    frames: list[AnyFrame] = []
    for second in range(begin, end):
        frames += [processes(second, *server(states, started=5.0)), tick(second + 0.5)]
    return frames


def loads(at: float, stamp: float, running: int = 2) -> AnyFrame:
    page = {"loads": [{"timestamp": stamp, "num_running_reqs": running, "gen_throughput": 80.0}]}
    return http(at, LOADS, 200, body=json.dumps(page))


def test_a_lost_link_makes_no_stall() -> None:
    memory = run(Link(at=25.0, state="lost", reason="gone"), *map(tick, range(25, 2000, 5)), memory=begun())
    seen = only_server(memory)
    assert (seen.state, seen.verdict.word) == ("capturing", "working")
    assert [alert.text for alert in memory.picture.alerts] == ["connection lost: gone"]
    assert "last line" in seen.truth
    assert "33:0" not in seen.truth, "nobody knows what it has printed meanwhile"


def test_a_server_that_stood_still_all_the_while_is_stalled_once_it_was_looked_at_again() -> None:
    away = run(Link(at=25.0, state="lost", reason="gone"), *map(tick, range(25, 400)), memory=begun())
    back = run(hello(400.0), Link(at=400.0, state="live"), *looked_at(400, 402), memory=away)
    assert only_server(back).state == "capturing"
    later = run(*looked_at(402, 405), memory=back)
    assert only_server(later).state == "stalled"


def test_a_stall_that_outlasts_a_lost_link_is_one_stall_and_rings_once() -> None:
    memory = run(*looked_at(12, 200), memory=begun())
    assert only_server(memory).state == "stalled"
    rung = [event for event in memory.picture.events if "stalled" in event.text]
    away = run(Link(at=200.0, state="lost", reason="gone"), *map(tick, range(200, 230)), memory=memory)
    back = run(hello(230.0), Link(at=230.0, state="live"), memory=away)
    for frame in looked_at(230, 240):
        back = run(frame, memory=back)
        assert only_server(back).state == "stalled"
    assert [event for event in back.picture.events if "stalled" in event.text] == rung


def test_a_shell_that_tells_of_a_killed_process_means_none_that_lives() -> None:
    """Several servers, or a script that starts one again and again, write into one log."""
    text = f"{CAPTURE}\nrun.sh: line 12:  4242 Killed                  python3 -m sglang.launch_server\n"
    memory = run(*looked_at(12, 15), memory=begun(text))
    assert only_server(memory).state == "capturing"
    assert not memory.picture.alerts
    over = run(processes(15.0), tick(16.0), memory=memory)
    assert [one.key for one in only_server(over).diagnoses] == ["sigkill_unknown_origin"]


def test_what_was_printed_while_we_were_away_comes_before_the_verdict() -> None:
    away = run(Link(at=25.0, state="lost", reason="gone"), *map(tick, range(25, 400)), memory=begun())
    news = "\rCapturing batches (bs=8 avail_mem=4.90 GB):  60%|##6       | 14/23 [00:05<00:14, 1.2it/s]"
    back = run(
        hello(400.0),
        Link(at=400.0, state="live"),
        processes(400.2, *server("SSS", started=5.0)),
        log(401.0, news, offset=len(CAPTURE)),
        *looked_at(401, 410),
        memory=away,
    )
    assert only_server(back).state == "capturing"
    assert not [alert for alert in back.picture.alerts if alert.alarm]


def test_a_host_whose_clock_is_behind_ours_is_believed() -> None:
    memory = run(Link(at=9000.0, state="connecting"), tick(9001.0), hello(5.0), tick(6.0))
    assert memory.picture.now == 6.0


def test_a_server_that_has_not_printed_anything_yet_is_starting() -> None:
    memory = run(hello(), Link(at=0.0, state="live"), *looked_at(6, 30))
    seen = only_server(memory)
    assert (seen.state, seen.phase) == ("starting", "boot")


def test_a_silent_start_is_stalled_in_the_end() -> None:
    memory = run(hello(), Link(at=0.0, state="live"), *looked_at(6, 330))
    assert only_server(memory).state == "stalled"


def test_an_old_server_with_an_empty_log_is_not_guessed_at() -> None:
    old = server("SSS", started=-4000.0)
    memory = run(hello(), Link(at=0.0, state="live"), processes(5.0, *old), processes(500.0, *old))
    assert only_server(memory).state == "unknown"


def test_where_no_log_tells_anything_the_cards_still_say_which_rank_rests() -> None:
    old = server("SRR", started=-4000.0)
    cards = gpus(30.0, 70.0, 70.0, util=100).cards
    seen = Gpus(at=499.0, cards=(msgspec.structs.replace(cards[0], util=0, power_w=95.0), *cards[1:]))
    memory = run(hello(), Link(at=0.0, state="live"), processes(499.0, *old), seen, processes(500.0, *old))
    (ranks,) = [one for one in only_server(memory).verdict.reasons if one.signal == "ranks"]
    assert only_server(memory).state == "unknown"
    assert ranks.value.startswith("TP0 rests at 0 %, 95 W; the other 1 spin at 100 %")
    alike = run(Gpus(at=501.0, cards=cards), processes(501.5, *old), memory=memory)
    assert "ranks" not in [one.signal for one in only_server(alike).verdict.reasons]


def test_a_stop_that_was_seen_before_it_moved_is_over() -> None:
    ready = begun(CAPTURE + READY)
    stopped = run(
        loads(30.0, 30.0), processes(31.0, *server("SST")), loads(36.9, 30.0), tick(37.0), memory=ready
    )
    assert only_server(stopped).state == "stalled"
    moved = run(loads(40.0, 40.0), memory=stopped)
    assert only_server(moved).state == "ready"
    # Nobody has looked at the processes since: what they were is no news six seconds later either.
    assert only_server(run(loads(42.0, 40.0), loads(46.0, 40.0), memory=moved)).state == "ready"


def test_an_old_time_stamp_counts_when_it_was_read_and_not_when_it_was_not_asked_for() -> None:
    memory = run(loads(30.0, 30.0), memory=begun(CAPTURE + READY))
    silent = run(*looked_at(31, 44), memory=memory)
    assert only_server(silent).state == "ready"
    assert only_server(run(loads(44.5, 30.0), memory=silent)).state == "stalled"


@pytest.mark.parametrize(("answered_at", "state"), [(20.0, "ready"), (30.5, "degraded")])
def test_a_503_from_before_the_ready_line_is_over(answered_at: float, state: str) -> None:
    batch = (
        "[2026-11-02 01:23:01 TP0] Decode batch, #running-req: 1, #token: 40, token usage: 0.00, "
        "cuda graph: True, gen throughput (token/s): 82.40, #queue-req: 0\n"
    )
    frames: list[AnyFrame] = [
        log(30.0, READY, offset=len(CAPTURE)),
        log(30.2, batch, offset=len(CAPTURE + READY)),
        http(answered_at, HEALTH, 503),
    ]
    memory = run(*sorted(frames, key=lambda frame: frame.at), memory=begun())
    assert only_server(memory).state == state


def test_a_card_that_stopped_answering_vetoes_no_stall() -> None:
    card = gpus(30.0, 70.0, util=100).cards[0]
    hot = Gpus(at=30.0, cards=(msgspec.structs.replace(card, power_w=500.0),))
    memory = run(loads(30.0, 30.0), hot, memory=begun(CAPTURE + READY))
    assert only_server(run(loads(39.0, 30.0), loads(41.0, 30.0), memory=memory)).state == "stalled"
    still_hot = msgspec.structs.replace(hot, at=39.5)
    assert only_server(run(loads(39.0, 30.0), still_hot, loads(41.0, 30.0), memory=memory)).state == "ready"


def test_workers_left_behind_hold_memory_only_where_that_was_seen() -> None:
    _, *workers = server("SSS")
    left = [msgspec.structs.replace(worker, ppid=1, uvm=False) for worker in workers]
    blind = only_server(run(processes(30.0, *left), memory=begun()))
    assert blind.state == "crashed"
    assert "orphan_processes" not in {diagnosis.key for diagnosis in blind.diagnoses}
    seen = only_server(run(gpus(29.0, 70.0, 70.0), processes(30.0, *left), memory=begun()))
    (orphans,) = [diagnosis for diagnosis in seen.diagnoses if diagnosis.key == "orphan_processes"]
    assert orphans.evidence == "TP0 102 holds 70.0 GiB; TP1 103 holds 70.0 GiB"
