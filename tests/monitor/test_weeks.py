"""A dashboard that is left open for a week: what was said is news again one day, and nothing piles up."""

from __future__ import annotations

from specdash.monitor.frames import AnyFrame, Health, Kernel, Link
from specdash.monitor.memory import Memory
from specdash.monitor.observe import acknowledge, snooze
from specdash.monitor.polling import LOADS
from specdash.monitor.samples import CardHealth, KernelLine
from specdash.monitor.wants import wants
from specdash.tui.plain import Narrator
from tests.monitor.frames_of import (
    COMMAND,
    gpus,
    hello,
    http,
    log,
    only_server,
    process,
    processes,
    run,
    server,
    tick,
)
from tests.monitor.starts import ARGS, LOADED, LOADING, READY

XID = "NVRM: Xid (PCI:0000:17:00): 94, pid=102, Contained ECC error number {number}."


def keys(memory: Memory) -> list[str]:
    return [alert.key for alert in memory.picture.alerts]


def orphaned(at: float) -> list[AnyFrame]:
    """Memory that nobody owns, in as many looks as make it so."""
    return [gpus(at + look, 76, owned=False) for look in range(4)]


def test_what_was_acknowledged_stays_away_while_it_holds_and_is_told_again_when_it_comes_back() -> None:
    memory = run(hello(), processes(1.0), *orphaned(10.0))
    key = "gpu:GPU-0/orphan"
    assert keys(memory) == [key]
    memory = run(*orphaned(20.0), *orphaned(4000.0), memory=acknowledge(memory, key))
    assert keys(memory) == [], "it still holds: it was seen"
    memory = run(gpus(4010.0, 0), gpus(4020.0, 0), *orphaned(4030.0), memory=memory)
    assert keys(memory) == [], "a gap of seconds is no end"
    memory = run(gpus(5000.0, 0), tick(6000.0), *orphaned(90_000.0), memory=memory)
    assert keys(memory) == [key], "a day later it is another one"


def test_what_was_acknowledged_or_snoozed_long_ago_is_not_remembered_for_ever() -> None:
    memory = run(hello(), processes(1.0), *orphaned(10.0))
    key = keys(memory)[0]
    memory = acknowledge(run(tick(20.0), memory=snooze(memory, key, 5.0)), key)
    memory = run(gpus(30.0, 0), tick(1000.0), memory=memory)
    assert (dict(memory.dismissed), dict(memory.snoozed)) == ({}, {})


def test_a_storm_of_reports_is_told_once_and_not_again_with_every_frame() -> None:
    lines = tuple(KernelLine(at=100.0 + n, text=XID.format(number=n), us=n) for n in range(50))
    memory = run(hello(), processes(1.0), *orphaned(10.0), Kernel(at=150.0, lines=lines), tick(160.0))
    told = memory.picture.events
    assert len(memory.picture.alerts) == 50
    for at in range(161, 171):
        memory = run(tick(float(at)), *orphaned(float(at)), memory=memory)
    assert memory.picture.events == told, "what had no room in the list is no news a second later"


def test_an_idle_worker_of_ray_that_ends_is_no_crash() -> None:
    serve = ("/venv/bin/python", "/venv/bin/vllm", "serve", "m", "--distributed-executor-backend", "ray")
    main = process(200, 1, *serve, sid=200)
    core = process(201, 200, "VLLM::EngineCore", sid=200)
    worker = process(202, 200, "ray::RayWorkerWrapper", sid=200)
    idle = process(203, 200, "ray::IDLE", sid=200)
    memory = run(hello(), *(processes(float(at), main, core, worker, idle) for at in range(1, 9)))
    memory = run(*(processes(float(at), main, core, worker) for at in range(9, 30)), memory=memory)
    assert only_server(memory).state != "crashed", only_server(memory).verdict


def test_helpers_that_come_and_go_are_not_remembered_for_ever() -> None:
    memory = run(hello(), processes(1.0, *server()))
    for number in range(3000):
        helper = process(1000 + number, 100, "nvidia-smi", env={"NCCL_ALGO": "Ring"})
        memory = run(processes(2.0 + number, *server(), helper), memory=memory)
    assert len(memory.servers[0].sights) < 1200
    assert {100, 102, 103} <= memory.servers[0].sights.keys(), "its own processes stay known"


def test_a_log_on_a_disk_whose_clock_is_late_is_as_young_as_its_coming() -> None:
    """The server of a network disk stamps files by its own clock: five minutes late here."""
    late = 300.0
    born = server(started=1000.0)
    table = [processes(at, *born) for at in (1001.0, 1002.0)]
    memory = run(hello(1000.0), *table, log(1003.0, ARGS, start_=True, mtime=1003.0 - late))
    offset = len(ARGS)
    for at, line in enumerate(LOADING.splitlines(keepends=True)):
        memory = run(
            log(1005.0 + at, line, offset, mtime=1005.0 + at - late),
            processes(1005.5 + at, *born),
            memory=memory,
        )
        offset += len(line)
    shown = only_server(memory)
    assert shown.state == "loading", shown.verdict
    assert shown.last_line_at is not None
    assert memory.picture.now - shown.last_line_at < 5.0


def test_two_servers_of_containers_that_want_one_port_take_no_answer_for_each_others() -> None:
    """Who answers on the host's port is one of them, and nobody knows which."""
    one = process(100, 1, *COMMAND, sid=100, other_net=True)
    two = process(300, 1, *COMMAND, sid=300, other_net=True)
    alone = run(hello(), processes(1.0, one), processes(2.0, one))
    assert [plan.server for plan in wants(alone).polls] == ["100:100"]
    both = run(hello(), processes(1.0, one, two), processes(2.0, one, two))
    assert wants(both).polls == ()
    answered = run(http(3.0, "/health", 200), memory=both)
    assert [server.state for server in answered.picture.servers] == ["unknown", "unknown"]
    ports = [
        lamp.value for server in answered.picture.servers for lamp in server.lamps if lamp.name == "port"
    ]
    assert ports == ["30000 of a container's network, and of another server: not asked"] * 2


def test_a_server_that_was_found_hung_is_asked_for_its_counters_although_it_never_says_that_it_is_well() -> (
    None
):
    found = run(hello(), processes(1.0, *server()), log(10.0, ARGS + LOADING + LOADED + READY, start_=True))
    memory = run(http(12.0, "connect"), http(13.0, "/health", error="timeout"), memory=found)
    (plan,) = wants(memory).polls
    assert {"/health", "/v1/loads?include=all"} <= {call.path for call in plan.calls}


def test_tokens_of_a_night_without_a_link_are_no_speed_of_now_and_no_token_of_now() -> None:
    def page(at: float, tokens: int) -> AnyFrame:
        return http(
            at, "/metrics", 200, body=f"sglang:generation_tokens_total {tokens}\nsglang:num_running_reqs 2\n"
        )

    found = run(hello(), processes(1.0, *server()), log(10.0, ARGS + LOADING + LOADED + READY, start_=True))
    memory = run(http(12.0, "/health", 200), page(20.0, 1000), page(25.0, 1500), memory=found)
    assert only_server(memory).figures.tok_s == 100.0
    assert only_server(memory).proven_at == 25.0
    night = 8 * 3600.0
    memory = run(
        hello(night), processes(night, *server()), page(night + 1, 3_000_000), tick(night + 2), memory=memory
    )
    shown = only_server(memory)
    assert shown.figures.tok_s is None
    assert shown.proven_at == 25.0
    assert "last token" not in shown.truth
    assert shown.state == "ready"
    cut_off = http(night + 4, "/metrics", 200, body="sglang:num_running_reqs 2\n")
    assert run(cut_off, memory=memory).servers[0].moved == memory.servers[0].moved
    memory = run(page(night + 6, 3_000_500), memory=memory)
    assert only_server(memory).figures.tok_s == 100.0
    assert only_server(memory).proven_at == night + 6


def test_after_another_boot_nothing_is_said_of_processes_and_cards_before_they_are_seen() -> None:
    health = Health(at=3.0, cards=(CardHealth(index=0),))
    memory = run(hello(), processes(1.0, *server()), gpus(2.0, 76), health)
    again = run(
        Link(at=20.0, state="lost"), Link(at=90.0, state="live"), hello(90.0, boot="2"), memory=memory
    )
    shown = again.picture
    assert (shown.processes_at, shown.gpus_at, shown.health) == (None, None, {})
    narrator = Narrator()
    narrator.tell(memory.picture)
    assert not any("no server is running" in line for line in narrator.tell(shown))


def test_a_page_of_counters_that_breaks_calls_no_stall_by_what_it_told_before() -> None:
    page = "sglang:generation_tokens_total {}\nsglang:num_running_reqs 3\n"
    found = run(hello(), processes(1.0, *server()), log(10.0, ARGS + LOADING + LOADED + READY, start_=True))
    told = [http(20.0 + 5 * n, "/metrics", 200, body=page.format(1000 + n)) for n in range(3)]
    memory = run(http(12.0, "/health", 200), *told, memory=found)
    assert only_server(memory).figures.running == 3
    for at in range(35, 200, 5):
        broken = http(float(at), "/metrics", 500, body="FileNotFoundError")
        memory = run(processes(float(at), *server()), broken, http(at + 1.0, "/health", 200), memory=memory)
    shown = only_server(memory)
    assert (shown.state, shown.figures.running) == ("ready", None)


def test_where_load_reports_break_the_counters_take_their_place() -> None:
    loads = '{"loads": [{"num_running_reqs": 1, "gen_throughput": 50.0, "timestamp": 19.0}]}'
    page = "sglang:generation_tokens_total {}\nsglang:num_running_reqs 2\n"
    found = run(hello(), processes(1.0, *server()), log(10.0, ARGS + LOADING + LOADED + READY, start_=True))
    memory = run(http(12.0, "/health", 200), http(20.0, LOADS, 200, body=loads), memory=found)
    assert only_server(memory).figures.running == 1
    pages = (http(at, "/metrics", 200, body=page.format(int(at) * 100)) for at in (26.0, 36.0))
    memory = run(http(22.0, LOADS, 500), *pages, memory=memory)
    figures = only_server(memory).figures
    assert (figures.source, figures.running, figures.tok_s) == ("/metrics", 2, 100.0)
