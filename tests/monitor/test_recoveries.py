"""What is announced when trouble ends: each time in the words that fit."""

from __future__ import annotations

from specdash.monitor.frames import Link
from specdash.monitor.memory import Memory
from specdash.monitor.polling import HEALTH
from tests.monitor.frames_of import hello, http, log, processes, run, server, tick

SERVING = (
    "[2026-11-02 01:00:00] server_args=ServerArgs(model_path='/models/t', tp_size=2, port=30000)\n"
    "[2026-11-02 01:23:00] The server is fired up and ready to roll!\n"
)
BATCH = (
    "[2026-11-02 01:23:01 TP0] Decode batch, #running-req: 1, #token: 40, token usage: 0.00, "
    "cuda graph: True, gen throughput (token/s): 82.40, #queue-req: 0\n"
)
TERM = (
    "[2026-11-02 01:24:00] SIGTERM received. signum=None frame=None. Draining requests and shutting down...\n"
)


def serving() -> Memory:
    return run(
        hello(),
        Link(at=0.0, state="live"),
        processes(10.0, *server()),
        log(11.0, SERVING + BATCH, start_=True),
        processes(13.0, *server()),
    )


def last(memory: Memory) -> str:
    return memory.picture.alerts[-1].text


def test_a_server_that_was_hampered_serves_well_again_and_is_not_called_newly_ready() -> None:
    busy = run(http(15.0, HEALTH, 503), memory=serving())
    assert "degraded" in last(busy)
    assert last(run(http(17.0, HEALTH, 200), memory=busy)) == "sglang:30000 serves well again"


def test_a_hung_server_that_is_told_to_end_has_stopped_and_not_moved() -> None:
    hung = run(*(processes(20.0 + t, *server("SST")) for t in range(8)), tick(28.0), memory=serving())
    assert "stalled" in last(hung)
    told = run(log(29.0, TERM, offset=len(SERVING + BATCH)), memory=hung)
    assert "stalled" in last(told), "nothing is over before its process is gone"
    assert (
        last(run(processes(40.0), tick(41.0), memory=told)) == "sglang:30000 has stopped, as it was asked to"
    )
