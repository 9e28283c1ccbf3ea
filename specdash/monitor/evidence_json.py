"""The file of ``specdash log --evidence``: what was seen beside a log, written by hand or by a script."""

from __future__ import annotations

import itertools
from typing import Annotated, TypeVar

import msgspec

from specdash.monitor.evidence import PROCESS_STATES, Answer, CardSeen, Evidence, RankSeen

T = TypeVar("T")
Count = Annotated[int, msgspec.Meta(ge=0)]
Amount = Annotated[float, msgspec.Meta(ge=0)]


class EvidenceError(ValueError):
    """The file is no evidence; the message names the file and the key."""


class _Part(msgspec.Struct, frozen=True, kw_only=True):
    """Base: unknown keys are ignored, so that newer files stay readable."""


class _Answer(_Part, frozen=True, kw_only=True):
    status: Count | None = None
    body: str = ""
    error: str | None = None
    tokens: Count | None = None
    age_s: Amount | None = None


class _Gpu(_Part, frozen=True, kw_only=True):
    index: Count
    used_mib: Amount | None = None
    total_mib: Amount | None = None
    util: Amount | None = None
    power_w: Amount | None = None
    power_limit_w: Amount | None = None
    owned_mib: Amount | None = None
    error: str | None = None


class _Worker(_Part, frozen=True, kw_only=True):
    rank: str | None = None
    pid: Count | None = None
    state: str | None = None
    state_age_s: Amount | None = None
    cpu_pct: Amount | None = None


class _Sample(_Part, frozen=True, kw_only=True):
    t: float
    running: Count | None = None
    waiting: Count | None = None
    prompt_tokens_total: float | None = None
    generation_tokens_total: float | None = None


class _PortOwner(_Part, frozen=True, kw_only=True):
    pid: Count | None = None
    age_s: Amount | None = None


class _Exit(_Part, frozen=True, kw_only=True):
    code: int | None = None


class _File(_Part, frozen=True, kw_only=True):
    http: dict[str, msgspec.Raw] = {}
    gpus: tuple[_Gpu, ...] = ()
    workers: tuple[_Worker, ...] = ()
    compilers: Count | None = None
    changed_s: dict[str, msgspec.Raw] = {}
    metrics: tuple[_Sample, ...] = ()
    kernel: tuple[str, ...] = ()
    port_owner: _PortOwner | None = None
    exit: _Exit | None = None


def decode_evidence(raw: bytes, name: str) -> Evidence:
    """Read an evidence file. ``name`` is the file's, for the message.

    Raises ``EvidenceError`` naming file and key: not JSON, a wrong type, a negative age, an unknown process
    state, or no known key at all.
    """
    known = _decode(raw, dict[str, msgspec.Raw], name, "")
    file = _decode(raw, _File, name, "")
    if known and not known.keys() & set(_File.__struct_fields__):
        expected = ", ".join(_File.__struct_fields__)
        raise EvidenceError(f"{name}: {next(iter(known))}: not a key of the evidence; known are {expected}")
    return _evidence(file, name)


def _decode(raw: bytes | msgspec.Raw, wanted: type[T], name: str, key: str) -> T:
    """Decode one part; an error names the file and the key."""
    try:
        return msgspec.json.decode(raw, type=wanted)
    except msgspec.ValidationError as error:
        what, _, path = str(error).partition(" - at `$")
        where = (key + path.rstrip("`")).lstrip(".") or "the file"
        raise EvidenceError(f"{name}: {where}: {what[0].lower()}{what[1:]}") from None
    except msgspec.DecodeError as error:
        raise EvidenceError(f"{name}: not JSON: {error}") from None


def _evidence(file: _File, name: str) -> Evidence:
    answers = {path: _answer(_decode(raw, _Answer, name, f"http.{path}")) for path, raw in file.http.items()}
    health = answers.get("/health") or answers.get("/health_generate") or answers.get("/ready")
    tokens_age, running, waiting = _counters(file.metrics)
    changed = {what: _age(raw, name, f"changed_s.{what}") for what, raw in file.changed_s.items()}
    owner = file.port_owner or _PortOwner()
    return Evidence(
        progress_age_s=changed.get("progress"),
        memory_age_s=changed.get("gpu_memory"),
        cpu_age_s=changed.get("cpu"),
        read_age_s=changed.get("read_bytes"),
        tokens_age_s=changed.get("tokens", tokens_age),
        loads_age_s=changed.get("loads"),
        compilers=None if file.compilers is None else ("compiler",) * file.compilers,
        running=running,
        waiting=waiting,
        ranks=_ranks(file, name),
        cards=tuple(_card(gpu) for gpu in file.gpus),
        health=health,
        models=answers.get("/v1/models"),
        generate=answers.get("generate") or answers.get("/generate") or answers.get("/v1/completions"),
        kernel=file.kernel,
        exit_code=file.exit.code if file.exit else None,
        port_owner_pid=owner.pid,
        port_owner_age_s=owner.age_s,
    )


def _age(raw: msgspec.Raw, name: str, key: str) -> float:
    seconds = _decode(raw, float, name, key)
    if seconds < 0:
        raise EvidenceError(f"{name}: {key}: an age is not negative")
    return seconds


def _answer(answer: _Answer) -> Answer:
    return Answer(
        status=answer.status,
        error=answer.error,
        body=answer.body,
        tokens=answer.tokens,
        age_s=answer.age_s,
    )


def _card(gpu: _Gpu) -> CardSeen:
    return CardSeen(
        index=gpu.index,
        used_mib=_whole(gpu.used_mib),
        total_mib=_whole(gpu.total_mib),
        util=_whole(gpu.util),
        power_w=gpu.power_w,
        power_limit_w=gpu.power_limit_w,
        owned_mib=_whole(gpu.owned_mib),
        error=gpu.error,
    )


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


def _ranks(file: _File, name: str) -> tuple[RankSeen, ...]:
    """The workers; with as many GPUs as workers, the n-th GPU is taken for the n-th worker's."""
    paired = len(file.gpus) == len(file.workers)
    ranks = []
    for at, worker in enumerate(file.workers):
        if worker.state is not None and worker.state not in PROCESS_STATES:
            raise EvidenceError(
                f"{name}: workers[{at}].state: {worker.state!r} is no process state (R, S, D, T, Z, gone)"
            )
        gpu = file.gpus[at] if paired else None
        ranks.append(
            RankSeen(
                name=worker.rank or f"worker {at}",
                pid=worker.pid,
                state=PROCESS_STATES[worker.state] if worker.state else None,
                state_age_s=worker.state_age_s,
                cpu_pct=worker.cpu_pct,
                util=_whole(gpu.util) if gpu else None,
                power_w=gpu.power_w if gpu else None,
                power_limit_w=gpu.power_limit_w if gpu else None,
            )
        )
    return tuple(ranks)


def _counters(samples: tuple[_Sample, ...]) -> tuple[float | None, int | None, int | None]:
    """Age of the last token, running and waiting, from samples of the counters.

    Counters that stood still through all samples have stood at least that long.
    """
    if not samples:
        return None, None, None
    ordered = sorted(samples, key=lambda sample: sample.t)
    last = ordered[-1]
    counted = [sample for sample in ordered if _total(sample) is not None]
    age: float | None = None
    if len(counted) > 1:
        moved = [b.t for a, b in itertools.pairwise(counted) if _total(a) != _total(b)]
        age = counted[-1].t - (moved[-1] if moved else counted[0].t)
    return age, last.running, last.waiting


def _total(sample: _Sample) -> tuple[float | None, float | None] | None:
    if sample.prompt_tokens_total is None and sample.generation_tokens_total is None:
        return None
    return sample.prompt_tokens_total, sample.generation_tokens_total
