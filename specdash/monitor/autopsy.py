"""Why a server is dead: by its own words, by the kernel's, or by what its processes left behind."""

from __future__ import annotations

import msgspec

from specdash.monitor.case import Case, Judged
from specdash.monitor.evidence import RankSeen
from specdash.monitor.kernel import SOFTWARE, KernelFinding
from specdash.monitor.rootcause import Cause, refine
from specdash.monitor.spans import ago
from specdash.monitor.speech import say, say_trouble
from specdash.monitor.words import State

VICTIMS_SHOWN = 5
SIGKILLED = frozenset({-9, 137})
HOST_OOM = "rank_killed_by_host_oom"

replace = msgspec.structs.replace


def of_cause(case: Case, cause: Cause) -> Judged:
    """The log says why."""
    root, key = cause.root, refine(cause, case.words.troubles)
    engine = case.words.engine
    first = say_trouble(case.book, root, key, engine=engine, root=True)
    if key == "stale_process_on_port" and (owner := _port_owner(case)):
        first = replace(first, evidence=f"{first.evidence} ({owner})")
    if key == "engine_dead_exit_zero" and (dead := _dead(case)):
        names = " and ".join(f"{rank.name} {rank.pid}" for rank in dead[:2])
        first = replace(first, summary=f"{first.summary}: {names} {'is' if len(dead) == 1 else 'are'} gone")
    killed = key in ("rank_killed_sigkill", "sigkill_unknown_origin", "peer_died_first")
    told = next((one for one in case.kernel if killed or one.key not in (*SOFTWARE, HOST_OOM)), None)
    if told is not None:
        seen = say(case.book, told.key, engine=engine, evidence=told.text, line=root.line, rank=root.rank)
        first, rest = seen, [replace(first, root=False, severity="warning")]
    else:
        rest = []
    rest += [
        say_trouble(case.book, one, one.key or "peer_died_first", engine=engine, root=False)
        for one in cause.victims[:VICTIMS_SHOWN]
    ]
    if case.evidence.exit_code == 0 and key != "engine_dead_exit_zero":
        rest.append(replace(case.say("engine_dead_exit_zero"), root=False, severity="warning"))
    meaning = case.book.meanings.get(key)
    state: State = "stopped" if meaning and meaning.state == "stopped" else "crashed"
    place = next((one for one in (root, *cause.victims) if one.phase), None)
    return case.judged(
        state,
        [first, *rest],
        phase=place.phase if place else case.evidence.phase,
        role=root.role or case.evidence.role,
        says=root.text,
    )


def ended(case: Case) -> Judged | None:
    """It is over: asked to, killed, or dead without a word."""
    words, evidence = case.words, case.evidence
    if words.stopped or case.verdict.word == "stopped":
        return case.judged("stopped", [])
    oom = next((one for one in case.kernel if one.key == HOST_OOM), None)
    if evidence.exit_code in SIGKILLED or (oom and evidence.exit_code is not None):
        if oom:
            return case.judged("crashed", [case.say(HOST_OOM, oom.text)], says=oom.text)
        text = f"exit code {evidence.exit_code}"
        return case.judged("stopped", [case.say("sigkill_unknown_origin", text)], says=text)
    if case.verdict.word == "crashed":
        return _dead_rank(case, oom)
    if words.bind_error:
        return case.judged("crashed", [case.say("stale_process_on_port", _port_owner(case))])
    if words.crashed:
        return case.judged("crashed", [case.say("peer_died_first")])
    if evidence.exit_code not in (None, 0):
        text = f"exit code {evidence.exit_code}, and no word in the log"
        return case.judged("crashed", [case.say("scheduler_exception", text)], says=text)
    return case.judged("stopped", []) if evidence.exit_code == 0 else None


def _dead_rank(case: Case, oom: KernelFinding | None) -> Judged:
    dead = _dead(case)
    text = ", ".join(f"{rank.name} {rank.state}" for rank in dead)
    told = oom or next((one for one in case.kernel if one.key != "nvml_call_hangs"), None)
    if told:
        return case.judged("crashed", [case.say(told.key, told.text)])
    if dead:
        said = case.say("scheduler_dead_parent_alive", text, rank=dead[0].name)
        return case.judged("crashed", [replace(said, summary=f"{said.summary}: {_gone(dead)}")])
    return case.judged("crashed", [])


def of_kernel(case: Case) -> Judged | None:
    """The driver has reported a broken GPU, whatever the log says."""
    broken = next((one for one in case.kernel if one.key not in SOFTWARE), None)
    if broken is None:
        return None
    meaning = case.book.meanings.get(broken.key)
    state: State = (meaning.state if meaning else None) or "crashed"
    return case.judged(state, [case.say(broken.key, broken.text)], says=broken.text)


def _dead(case: Case) -> list[RankSeen]:
    """Processes of the engine that were seen to go while their server lived."""
    everybody = (*case.evidence.ranks, *case.evidence.others)
    return [rank for rank in everybody if rank.state in ("Z", "gone")]


def _port_owner(case: Case) -> str:
    pid, age_s = case.evidence.port_owner_pid, case.evidence.port_owner_age_s
    return "" if pid is None else f"pid {pid} has it" + (f", up {ago(age_s)}" if age_s else "")


def _gone(dead: list[RankSeen]) -> str:
    """``EngineCore 4711 is gone``."""
    names = [f"{rank.name} {rank.pid}" if rank.pid is not None else rank.name for rank in dead]
    more = f" and {len(names) - 2} more" if len(names) > 2 else ""
    return f"{' and '.join(names[:2])}{more} {'is' if len(names) == 1 else 'are'} gone"
