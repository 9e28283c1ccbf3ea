"""What tells of a card's health: ECC, remapped rows, NVLink, memory clock. Never on the tick.

These calls are many and some are slow, so a thread of their own makes them every ten seconds: a card that
does not answer here still has its line once a second, and what could not be read says why.
"""

from specdash.agent import readings
from specdash.agent.crew import Crew, Stuck

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from specdash.agent.gpus import Gpus
    from specdash.agent.host import Host

    Json = dict[str, Any]

EVERY = 10.0
PATIENCE = 2.0
"""Seconds that the calls for one card may take."""
NOT_READY = 1.0

CORRECTED, UNCORRECTED = 0, 1
VOLATILE, AGGREGATE = 0, 1
MEMORY_CLOCK = 2
MOST_LINKS = 18
REPLAYS, RECOVERIES = 0, 1
"""NVLink's counters of what went wrong and was put right (nvmlNvLinkErrorCounter_t)."""
INVALID_ARGUMENT = 2


def ecc(nvml: "Any", handle: "Any") -> "Json":
    """Whether memory errors are corrected, and how many there were since the driver was loaded, and ever."""
    current, pending = nvml.nvmlDeviceGetEccMode(handle)[:2]
    values: "Json" = {"ecc": bool(current), "ecc_pending": bool(pending)}
    if current:
        for name, kind in (("corrected", CORRECTED), ("uncorrected", UNCORRECTED)):
            values[name] = int(nvml.nvmlDeviceGetTotalEccErrors(handle, kind, VOLATILE))
            values[name + "_ever"] = int(nvml.nvmlDeviceGetTotalEccErrors(handle, kind, AGGREGATE))
    return values


def remapped(nvml: "Any", handle: "Any") -> "Json":
    """Rows of memory that were replaced by spare ones."""
    correctable, uncorrectable, pending, failed = nvml.nvmlDeviceGetRemappedRows(handle)[:4]
    return {
        "rows_remapped": int(correctable) + int(uncorrectable),
        "rows_pending": bool(pending),
        "rows_failed": bool(failed),
    }


def _link_state(nvml: "Any", handle: "Any", link: int) -> "bool | None":
    """Whether a link is up; None where the card has no more of them."""
    try:
        return bool(nvml.nvmlDeviceGetNvLinkState(handle, link))
    except nvml.NVMLError as error:
        if link and readings.code_of(error) in (INVALID_ARGUMENT, readings.NOT_SUPPORTED):
            return None
        raise


def nvlink(nvml: "Any", handle: "Any") -> "Json":
    """How many links there are, how many are up, and how often they had to recover."""
    states: "list[bool]" = []
    while len(states) < MOST_LINKS:
        state = _link_state(nvml, handle, len(states))
        if state is None:
            break
        states.append(state)
    values: "Json" = {"nvlinks": len(states), "nvlinks_up": sum(states)}
    try:
        values["nvlink_errors"] = sum(
            int(nvml.nvmlDeviceGetNvLinkErrorCounter(handle, link, counter))
            for link, up in enumerate(states)
            if up
            for counter in (REPLAYS, RECOVERIES)
        )
    except (AttributeError, nvml.NVMLError):
        pass  # newer cards count elsewhere
    return values


def memory_clock(nvml: "Any", handle: "Any") -> "Json":
    """MHz, now and at most."""
    return {
        "mem_mhz": int(nvml.nvmlDeviceGetClockInfo(handle, MEMORY_CLOCK)),
        "mem_max_mhz": int(nvml.nvmlDeviceGetMaxClockInfo(handle, MEMORY_CLOCK)),
    }


def performance(nvml: "Any", handle: "Any") -> "Json":
    """0 is the highest performance state, 15 the lowest."""
    return {"pstate": int(nvml.nvmlDeviceGetPerformanceState(handle))}


QUESTIONS: "tuple[tuple[str, Callable[[Any, Any], Json]], ...]" = (
    ("ecc", ecc),
    ("remapped rows", remapped),
    ("nvlink", nvlink),
    ("memory clock", memory_clock),
    ("performance state", performance),
)


def read(nvml: "Any", handle: "Any") -> "Json":
    """Everything, and in ``missing`` the reason for what is not there. Raises where the card is gone."""
    values: "Json" = {}
    missing = {}
    for word, ask in QUESTIONS:
        answer, why = _answer(nvml, handle, ask)
        values.update(answer)
        if why is not None:
            missing[word] = why
    if missing:
        values["missing"] = missing
    return values


def _answer(nvml: "Any", handle: "Any", ask: "Callable[[Any, Any], Json]") -> "tuple[Json, str | None]":
    """An answer, or why there is none."""
    try:
        return ask(nvml, handle), None
    except AttributeError:
        return {}, "this driver's library does not tell"
    except nvml.NVMLError as error:
        code = readings.code_of(error)
        if code in (readings.LOST, readings.NEEDS_RESET):
            raise
        unsupported = code in (readings.NOT_SUPPORTED, readings.FUNCTION_NOT_FOUND)
        return {}, "not supported by this card" if unsupported else readings.say(code, error)


class Health(object):
    """Asks the cards that ``gpus`` has found, and sends a ``health`` frame for each round."""

    def __init__(
        self,
        host: "Host",
        send: "Callable[[Json], None]",
        complain: "Callable[[str], None]",
        gpus: "Gpus",
        every: float = EVERY,
    ) -> None:
        self.host = host
        self.every = every
        self.crew = Crew("card health", self._round, PATIENCE, host.monotonic, complain)
        self._send = send
        self._gpus = gpus

    def _round(self) -> float:
        nvml, cards = self._gpus.found()
        if not cards:
            return min(NOT_READY, self.every)
        answers = [dict(self._ask(nvml, index, handle), index=index) for index, handle in cards]
        self._send({"t": "health", "at": self.host.now(), "cards": answers})
        return self.every

    def _ask(self, nvml: "Any", index: int, handle: "Any") -> "Json":
        try:
            return self.crew.wait_for(index, read, nvml, handle)
        except Stuck:
            return {"error": "no answer for %d s" % self.crew.waited(index)}
        except nvml.NVMLError as error:
            return {"error": readings.say(readings.code_of(error), error)}
