"""Single signals: what one reading says about life, before anybody weighs them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

import msgspec

from specdash.monitor.documents import Reason, Verdict
from specdash.monitor.evidence import Evidence, RankSeen
from specdash.monitor.limits import AtOnce, Signal, Thresholds
from specdash.monitor.spans import ago
from specdash.monitor.words import Says


class Sign(msgspec.Struct, frozen=True, kw_only=True):
    """One signal as read. ``age_s`` None: not known, or it never moved while we looked."""

    signal: Signal
    value: str
    age_s: float | None
    says: Says

    def reason(self) -> Reason:
        """The sign as it stands in a verdict."""
        return Reason(signal=self.signal, value=self.value, age_s=self.age_s, says=self.says)


NOT_COUNTED = " (not counted)"
"""What the value of a signal ends with that looks like life and is none in this phase."""
NOT_SEEN: Final = "not seen"
_NOT_READ = (NOT_SEEN, "not looked", "not read")
_UNREAD: Final[Mapping[str, str]] = {
    "bar": "progress bar",
    "milestone": "milestones",
    "line": "log lines",
    "process": "processes",
    "cpu": "CPU time",
    "main_cpu": "the main process's CPU time",
    "read": "bytes read",
    "memory": "GPU memory",
    "nccl": "NCCL's lines",
    "power": "GPU power",
    "utilisation": "GPU utilisation",
}
"""What was not seen, in words; the other signals are called so already."""
NONE_SEEN = "none since we look"
_AT_WORK = frozenset({"cpu", "main_cpu", "read"})
_FORMS = {"flat": " · unchanged for {}", "alive": " · {} ago", "bad": " · for {}", "unknown": " · {} ago"}


def in_words(reason: Reason) -> str:
    """A reason with its age: ``4/8 · unchanged for 28 s``, ``2 % · idle for 9 s``, ``last one 4:47 ago``."""
    value = reason.value.removesuffix(NOT_COUNTED)
    last = value.startswith("last ")  # without its time that tells nothing
    form = " {} ago" if last else _FORMS[reason.says]
    if reason.says == "flat" and not last and reason.signal in _AT_WORK:
        form = " · idle for {}"  # the figure moves a little all the time
    if value == NONE_SEEN:
        form = ", {}"
    age = form.format(ago(reason.age_s)) if reason.age_s is not None and (last or reason.age_s >= 1) else ""
    return f"{value}{age}{' (does not count here)' if value != reason.value else ''}"


def counts(reason: Reason) -> bool:
    """False: it looks like life and is none in this phase; it speaks neither for a stall nor against one."""
    return not reason.value.endswith(NOT_COUNTED)


def until_stalled(verdict: Verdict) -> str:
    """What a suspect still lacks: ``called stalled after 2:00 without progress · 47 s so far``.

    Empty where no limit is set: nothing is asked of it.
    """
    limit_s, since_s = verdict.limit_s, verdict.since_s
    if limit_s is None:
        return ""
    if since_s is not None and since_s >= limit_s:
        return f"past its limit of {ago(limit_s)}: looked at once more before it is called stalled"
    so_far = "" if since_s is None else f" · {ago(since_s)} so far"
    return f"called stalled after {ago(limit_s)} without progress{so_far}"


def folded(reasons: Iterable[Reason]) -> tuple[Reason, ...]:
    """The same, with all that was not seen in one line: ``not seen: progress bar, bytes read``."""
    every = tuple(reasons)
    unread = [one for one in every if one.says == "unknown" and one.value in _NOT_READ]
    if len(unread) < 2:
        return every
    names = ", ".join(_UNREAD.get(one.signal, one.signal) for one in unread)
    one_line = Reason(signal=NOT_SEEN, value=names, age_s=None, says="unknown")
    return (*(one for one in every if one not in unread), one_line)


def read_sign(signal: Signal, evidence: Evidence, at_once: AtOnce, thresholds: Thresholds) -> Sign:
    """What this signal says now. Moving right now is an age of 0."""
    return _READERS[signal](evidence, at_once, thresholds)


def spinning(rank: RankSeen, thresholds: Thresholds) -> bool:
    """It waits at full speed: full utilisation at little power, or a whole core without knowing the GPU."""
    if rank.util is not None:
        return rank.util >= thresholds.spin_util_pct and not computes(
            rank.power_w, rank.power_limit_w, thresholds
        )
    return rank.state == "R" and (rank.cpu_pct is None or rank.cpu_pct >= thresholds.spin_util_pct)


def computes(power_w: float | None, limit_w: float | None, thresholds: Thresholds) -> bool:
    """A GPU that draws this much does arithmetic, not waiting. Unknown power is no proof of either."""
    if power_w is None:
        return False
    least = thresholds.power_busy_w if limit_w is None else thresholds.power_busy_fraction * limit_w
    return power_w >= least


def _aged(signal: Signal, value: str, age_s: float | None, at_once: AtOnce) -> Sign:
    """A signal of which we know when it last moved."""
    says: Says = "unknown" if age_s is None else "alive" if age_s < at_once.quiet_s else "flat"
    return Sign(signal=signal, value=value if age_s is not None else "not seen", age_s=age_s, says=says)


def _bar(evidence: Evidence, at_once: AtOnce, _: Thresholds) -> Sign:
    progress = evidence.progress
    value = f"{progress.done}/{progress.total}" if progress else "counter"
    return _aged("bar", value, evidence.progress_age_s, at_once)


def _read(evidence: Evidence, at_once: AtOnce, _: Thresholds) -> Sign:
    rate = evidence.read_mib_s
    return _aged("read", "last bytes" if rate is None else f"{rate:.0f} MiB/s", evidence.read_age_s, at_once)


def _cpu(evidence: Evidence, at_once: AtOnce, thresholds: Thresholds) -> Sign:
    processes = [*evidence.ranks, *([evidence.main] if evidence.main else [])]
    return _processor("cpu", processes, evidence.cpu_age_s, at_once, thresholds)


def _main_cpu(evidence: Evidence, at_once: AtOnce, thresholds: Thresholds) -> Sign:
    processes = [evidence.main] if evidence.main else []
    return _processor("main_cpu", processes, None, at_once, thresholds)


def _processor(
    signal: Signal,
    processes: list[RankSeen],
    age_s: float | None,
    at_once: AtOnce,
    thresholds: Thresholds,
) -> Sign:
    known = [(process.cpu_pct, process.name) for process in processes if process.cpu_pct is not None]
    if not known:
        return _aged(signal, "last use", age_s, at_once)
    most, name = max(known)
    if most >= thresholds.cpu_floor_pct:
        return Sign(signal=signal, value=f"{name} {most:.0f} %", age_s=0.0, says="alive")
    return Sign(signal=signal, value=f"{name} {most:.0f} %", age_s=age_s, says="flat")


def _compilers(evidence: Evidence, _: AtOnce, __: Thresholds) -> Sign:
    names = evidence.compilers
    if names is None:
        return Sign(signal="compilers", value="not looked", age_s=None, says="unknown")
    if not names:
        return Sign(signal="compilers", value="none", age_s=None, says="flat")
    return Sign(signal="compilers", value=", ".join(sorted(set(names))), age_s=0.0, says="alive")


def _power(evidence: Evidence, _: AtOnce, thresholds: Thresholds) -> Sign:
    """A GPU at work: a long prefill moves no counter for minutes. Not believed for ever."""
    drawn = list(_powers(evidence))
    if not drawn:
        return Sign(signal="power", value="not read", age_s=None, says="unknown")
    watts, limit, name = max(drawn, key=lambda one: one[0] / (one[1] or 2 * thresholds.power_busy_w))
    value = f"{name} {watts:.0f} W" + (f" of {limit:.0f} W" if limit else "")
    if not computes(watts, limit, thresholds):
        return Sign(signal="power", value=value, age_s=None, says="flat")
    tokens = [age for age in (evidence.tokens_age_s, evidence.batch_age_s) if age is not None]
    if tokens and min(tokens) >= thresholds.power_veto_s:
        return Sign(signal="power", value=f"{value}, no token", age_s=min(tokens), says="flat")
    return Sign(signal="power", value=value, age_s=0.0, says="alive")


def _powers(evidence: Evidence) -> Iterator[tuple[float, float | None, str]]:
    for card in evidence.cards:
        if card.power_w is not None:
            yield card.power_w, card.power_limit_w, f"GPU {card.index}"
    for rank in evidence.ranks:
        if rank.power_w is not None:
            yield rank.power_w, rank.power_limit_w, rank.name


def _tokens(evidence: Evidence, at_once: AtOnce, _: Thresholds) -> Sign:
    if evidence.tokens_seen or evidence.tokens_age_s is None:
        return _aged("tokens", "last one", evidence.tokens_age_s, at_once)
    age_s = evidence.tokens_age_s
    says: Says = "flat" if age_s >= at_once.quiet_s else "unknown"
    return Sign(signal="tokens", value=NONE_SEEN, age_s=age_s, says=says)


def _utilisation(evidence: Evidence, _: AtOnce, thresholds: Thresholds) -> Sign:
    """Never a sign of life; full utilisation at little power is how a hang looks."""
    used = [card.util for card in evidence.cards if card.util is not None]
    used = used or [rank.util for rank in evidence.ranks if rank.util is not None]
    if not used:
        return Sign(signal="utilisation", value="not read", age_s=None, says="unknown")
    value = f"{min(used)} %" if min(used) == max(used) else f"{min(used)}-{max(used)} %"
    spins = max(used) >= thresholds.spin_util_pct and not any(
        computes(watts, limit, thresholds) for watts, limit, _name in _powers(evidence)
    )
    if spins:
        return Sign(signal="utilisation", value=f"{value} at little power: spins", age_s=None, says="bad")
    return Sign(signal="utilisation", value=value, age_s=None, says="flat")


def _plain(
    signal: Signal, value: str, age: Callable[[Evidence], float | None]
) -> Callable[[Evidence, AtOnce, Thresholds], Sign]:
    return lambda evidence, at_once, _: _aged(signal, value, age(evidence), at_once)


_READERS: dict[Signal, Callable[[Evidence, AtOnce, Thresholds], Sign]] = {
    "bar": _bar,
    "milestone": _plain("milestone", "last one", lambda e: e.milestone_age_s),
    "line": _plain("line", "last one", lambda e: e.line_age_s),
    "process": _plain("process", "last new one", lambda e: e.process_age_s),
    "cpu": _cpu,
    "main_cpu": _main_cpu,
    "read": _read,
    "memory": _plain("memory", "last growth", lambda e: e.memory_age_s),
    "compilers": _compilers,
    "nccl": _plain("nccl", "last line", lambda e: e.nccl_age_s),
    "warmup": _plain("warmup", "its own request", lambda e: e.warmup_age_s),
    "batch": _plain("batch", "last line", lambda e: e.batch_age_s),
    "tokens": _tokens,
    "loads": _plain("loads", "time stamp", lambda e: e.loads_age_s),
    "power": _power,
    "utilisation": _utilisation,
}
