"""Hand-made pictures of hosts, one for each thing a screen must be able to say."""

from __future__ import annotations

import msgspec

from specdash.monitor.documents import Diagnosis, Progress, Reason, Verdict
from specdash.monitor.serverparts import (
    Figures,
    Lamp,
    LogSource,
)
from specdash.monitor.state import Alert, HostState, Link
from tests.tui.pieces import KEY, NOW, TOOK, cards, gpu, host, picture, rail, server, steps


def connecting() -> HostState:
    return HostState(target="root@gpubox", now=0.0, link=Link(state="connecting"))


def refused() -> HostState:
    return HostState(
        target="root@gpubox",
        now=NOW,
        link=Link(
            state="refused",
            since=NOW - 3,
            reason="the host key of gpubox changed: known_hosts line 12 has another. Nothing was sent.",
        ),
    )


def never_reached() -> HostState:
    return HostState(
        target="root@gpubox",
        now=NOW,
        link=Link(state="lost", since=NOW - 41, reason="Connection refused", retry_at=NOW + 8, attempt=4),
    )


def no_server() -> HostState:
    odd = gpu(1, 74.2, total_gib=95.6, util=0, watts=88, temp=36, name="NVIDIA RTX PRO 6000", orphan_gib=74.2)
    clean = [
        gpu(i, 0.0, total_gib=95.6, util=0, watts=30 + i, temp=33 + i % 3, name="NVIDIA RTX PRO 6000")
        for i in range(8)
    ]
    clean[1] = odd
    return picture(
        gpus=tuple(clean),
        alerts=(
            Alert(
                key="gpu:1/orphan", at=NOW - 95, severity="warning", next_key="gpu.clean",
                text="GPU 1: 74.2 GiB are held by nothing that lives",
            ),
        ),
    )  # fmt: skip


def no_driver() -> HostState:
    return picture(
        driver=None, gpus=(), gpus_at=None, gpu_error="no NVIDIA driver here: libnvidia-ml.so.1 was not found"
    )


def loading() -> HostState:
    return picture(
        gpus=cards(8, 41.0, util=3, watts=121),
        servers=(
            server(
                state="loading",
                phase="weights",
                role="target",
                progress=Progress(done=37, total=64, unit="shards"),
                verdict=Verdict(word="working", since_s=2, limit_s=300),
                truth="working · shard 37/64 2 s ago · reading 1.9 GiB/s · port refused · 11 processes",
                rail=rail(
                    "weights", {"dist_init": 4, "weights": 93}, Progress(done=37, total=64, unit="shards")
                ),
                steps=steps(2),
                last_line_at=NOW - 2,
                last_progress_at=NOW - 2,
            ),
        ),
    )


def capture() -> HostState:
    return picture(
        servers=(
            server(
                state="capturing",
                phase="capture",
                role="target",
                progress=Progress(done=4, total=8, unit="batches"),
                verdict=Verdict(word="working", since_s=4, limit_s=120),
                truth="working · batch 4/8 4 s ago · port refused · 9 processes",
                rail=rail("capture", TOOK | {"capture": 25}, Progress(done=4, total=8, unit="batches")),
                steps=steps(4),
                last_line_at=NOW - 4,
                last_progress_at=NOW - 4,
            ),
        ),
    )


FIGURES = Figures(
    at=NOW - 1, source="/v1/loads", tok_s=60.1, running=3, waiting=0, kv_pct=3.1, accept_len=2.41,
    ttft_ms=41.0, requests=1204,
)  # fmt: skip
TOK = tuple(59.8 + (i * 7 % 13) / 4 - (8 if i % 31 == 0 else 0) for i in range(120))


def serving(*, token: bool = True) -> HostState:
    lamps = (
        Lamp(name="log", says="yes", value="ready line", at=NOW - 22131),
        Lamp(name="port", says="yes", value="30000 listens", at=NOW - 2),
        Lamp(name="health", says="yes", value="200", at=NOW - 12),
        Lamp(name="models", says="yes", value="target", at=NOW - 60),
        Lamp(
            name="token",
            says="yes" if token else "unknown",
            value="one came back" if token else "not asked",
            at=NOW - 120 if token else None,
        ),
    )
    return picture(
        gpus=cards(8, 122.0),
        servers=(
            server(
                state="ready",
                phase="serving",
                started_at=NOW - 22360,
                ready_after_s=237.0,
                verdict=Verdict(word="ready", since_s=0.1, limit_s=60),
                truth="last token 0.1 s ago · 3 running 0 waiting · /health 200 12 s ago · 9 processes",
                rail=rail("serving", TOOK),
                steps=steps(7),
                lamps=lamps,
                proven_at=NOW - 120 if token else None,
                figures=FIGURES,
                tok_history=TOK,
                last_line_at=NOW - 1,
                last_progress_at=NOW - 0.1,
                polls_hidden=12,
            ),
        ),
    )


def idle() -> HostState:
    state = serving(token=False)
    now = state.servers[0]
    return msgspec.structs.replace(
        state,
        gpus=cards(8, 122.0, util=0, watts=118),
        servers=(
            msgspec.structs.replace(
                now,
                truth="idle · no request for 14:20 · /health 200 12 s ago · 9 processes",
                verdict=Verdict(word="ready", since_s=860, limit_s=None),
                figures=Figures(at=NOW - 1, source="/v1/loads", tok_s=0.0, running=0, waiting=0, kv_pct=0.0),
                tok_history=(0.0,) * 120,
            ),
        ),
    )


def stalled() -> HostState:
    reasons = (
        Reason(signal="graphs", value="4/8", age_s=28971, says="flat"),
        Reason(signal="last line", value="Capturing batches (bs=16 …)", age_s=28964, says="flat"),
        Reason(signal="GPU", value="0-2 4-7 100 %, 118 W; GPU 3 0 %", age_s=1, says="flat"),
        Reason(signal="GPU memory", value="76.0 GiB each", age_s=28971, says="flat"),
        Reason(signal="port 30000", value="refused", age_s=1, says="unknown"),
        Reason(signal="compilers", value="none", age_s=2, says="flat"),
    )
    gpus = list(cards(8, 76.0, util=100, watts=118))
    gpus[3] = gpu(3, 76.1, util=0, watts=84, temp=36, owner="TP3")
    return picture(
        gpus=tuple(gpus),
        servers=(
            server(
                state="stalled",
                phase="capture",
                role="target",
                started_at=NOW - 30_260,
                lagging=("TP3",),
                progress=Progress(done=4, total=8, unit="batches"),
                verdict=Verdict(word="stalled", since_s=28971, limit_s=120, reasons=reasons),
                truth="no progress for 8:02:51 in graph capture, where 1:10 was usual · TP3 is the odd one",
                rail=rail(
                    "capture",
                    TOOK | {"capture": 28980},
                    Progress(done=4, total=8, unit="batches"),
                    failed=True,
                ),
                steps=steps(4, failed=True),
                diagnoses=(
                    Diagnosis(
                        key="capture_collective_hang", root=True, severity="error", line=14, rank="TP3",
                        summary="stuck in graph capture: the counter stands still while the ranks spin",
                        evidence="Capturing batches (bs=16 avail_mem=33.0 GB):  50%",
                        remedy=("kill it and start it again", "look at NCCL_ALGO and NCCL_PROTO first"),
                    ),
                ),
                last_line_at=NOW - 28964,
                last_progress_at=NOW - 28971,
            ),
        ),
        alerts=(
            Alert(
                key=f"server:{KEY}/stalled", at=NOW - 52, severity="error", next_key="server.kill",
                text="sglang:30000 stalled in graph capture: 4/8 since 8:02:51", alarm=True,
            ),
        ),
    )  # fmt: skip


def crashed() -> HostState:
    return picture(
        gpus=tuple(gpu(i, 0.0, util=0, watts=75 + i, temp=34 + i % 2) for i in range(8)),
        servers=(
            server(
                state="crashed",
                phase="weights",
                role="draft",
                gone_at=NOW - 48,
                processes=0,
                ranks=(),
                verdict=Verdict(word="crashed", since_s=48, limit_s=None),
                truth="ended 48 s ago: the draft's context length does not fit the target's (TP0, line 13)",
                rail=rail("weights", {"dist_init": 2}, failed=True),
                steps=steps(2, failed=True),
                diagnoses=(
                    Diagnosis(
                        key="draft_context_mismatch", root=True, severity="error", line=13, rank="TP0",
                        summary="draft and target context lengths differ: 131072 ≠ 262144",
                        evidence="ValueError: Warning: User-specified context_length (262144) is greater "
                        "than the derived context_length (131072).",
                        remedy=(
                            "set max_position_embeddings of the draft's config.json to 262144",
                            "or start it with SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1",
                        ),
                    ),
                    Diagnosis(
                        key="peer_died_first", root=False, severity="info", line=15, rank="TP1",
                        summary="a victim: its cause is on another rank", evidence="Connection reset by peer",
                    ),
                ),
                last_line_at=NOW - 48,
            ),
        ),
        alerts=(
            Alert(
                key=f"server:{KEY}/crashed", at=NOW - 48, severity="error", next_key="config.patch",
                text="sglang:30000 crashed: draft and target context lengths differ", alarm=True,
            ),
        ),
    )  # fmt: skip


def gone() -> HostState:
    """As ``crashed``, but nothing was seen that says why it is gone."""
    state = crashed()
    unseen = Reason(signal="main process", value="4242 gone, reason not seen", age_s=48.0, says="bad")
    one = msgspec.structs.replace(
        state.servers[0],
        verdict=Verdict(word="crashed", since_s=48, limit_s=None, reasons=(unseen,)),
        truth="gone 48 s ago · reason not seen",
        rail=tuple(
            msgspec.structs.replace(item, mark="reached") if item.mark == "failed" else item
            for item in state.servers[0].rail
        ),
        steps=(),
        diagnoses=(),
    )
    alert = msgspec.structs.replace(
        state.alerts[0], severity="warning", next_key="server.restart",
        text="sglang:30000: main process gone in weights, reason not seen",
    )  # fmt: skip
    return msgspec.structs.replace(state, servers=(one,), alerts=(alert,))


def lost() -> HostState:
    return msgspec.structs.replace(
        capture(),
        link=Link(
            state="lost", since=NOW - 41, reason="no answer for 10 s", retry_at=NOW + 8, attempt=4,
            heard_at=NOW - 51,
        ),
        alerts=(
            Alert(
                key=f"link/lost/{int(NOW) - 41}", at=NOW - 41, severity="warning", next_key="conn.retry",
                text="connection lost: no answer for 10 s",
            ),
        ),
    )  # fmt: skip


def stale() -> HostState:
    return msgspec.structs.replace(
        serving(),
        link=Link(
            state="stale", since=NOW - 1, reason="nothing came from it for 4 s", rtt_ms=12, heard_at=NOW - 4
        ),
    )


def watch_only() -> HostState:
    many = list(cards(16, 122.0))
    many[3] = gpu(3, 74.0, util=0, watts=96, temp=36, owner="TP3")
    return picture(
        target="dgx2",
        host=msgspec.structs.replace(host(watch_only=True), name="dgx2"),
        gpus=tuple(many),
        servers=(
            server(
                engine="vllm",
                name="vllm:8000",
                version="0.26.0",
                speculation=None,
                parallel="TP16",
                state="capturing",
                phase="capture",
                lagging=("TP3",),
                progress=Progress(done=15, total=35, unit="graphs"),
                verdict=Verdict(word="working", since_s=3, limit_s=120),
                truth="working · graph 15/35 3 s ago · TP3 is 31 s behind the other 15 ranks",
                rail=rail("capture", TOOK | {"capture": 31}, Progress(done=15, total=35, unit="graphs")),
                steps=steps(4),
            ),
        ),
    )


def sick_cards() -> HostState:
    some = list(cards(8, 122.0))
    some[1] = gpu(1, 74.2, util=0, watts=88, temp=36, orphan_gib=74.2)
    some[2] = gpu(2, 0, error="GPU is lost")
    some[4] = gpu(4, 0, error="no answer for 41 s")
    some[5] = gpu(5, 122.1, util=99, watts=690, temp=88, owner="TP5", throttle=("hw thermal",))
    some[6] = gpu(6, 122.1, util=None, watts=None, temp=None, owner="TP6")
    return msgspec.structs.replace(serving(), gpus=tuple(some))


def two_servers() -> HostState:
    second = server(
        key="5000:1",
        engine="vllm",
        name="vllm:8000",
        version="0.26.0",
        pid=5000,
        port=8000,
        speculation=None,
        parallel="TP1",
        state="loading",
        phase="weights",
        truth="working · shard 1/2 1 s ago",
        rail=rail("weights", {"weights": 3}),
        log=LogSource(
            path=None,
            kind="terminal",
            says="its log goes to a terminal (pts/3): it cannot be read. Start it with > server.log 2>&1, "
            "or name another file: connect --log PATH",
        ),
    )
    state = serving()
    return msgspec.structs.replace(state, servers=(*state.servers, second))


def degraded() -> HostState:
    state = serving()
    now = msgspec.structs.replace(
        state.servers[0],
        state="degraded",
        verdict=Verdict(word="degraded", since_s=310, limit_s=None),
        truth="serves, but no draft token was accepted for 5:10 (accept length 1.00)",
        diagnoses=(
            Diagnosis(
                key="accept_length_one", root=True, severity="warning", line=None, rank=None,
                summary="no draft token is ever accepted: speculation only costs",
                evidence="accept len: 1.00 in 62 of 62 batches",
                remedy=("check that the draft belongs to this target",),
            ),
        ),
    )  # fmt: skip
    return msgspec.structs.replace(state, servers=(now,))
