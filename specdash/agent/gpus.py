"""The cards, once a second, through NVML. A card that hangs or is lost never takes the others with it."""

from specdash.agent import readings
from specdash.agent.crew import Crew, Stuck

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from specdash.agent.host import Host

    Json = dict[str, Any]

REINITIALISE = frozenset(
    (readings.UNINITIALIZED, readings.DRIVER_NOT_LOADED, readings.MISMATCH, readings.UNKNOWN)
)
"""Codes that, on every card at once, mean that the driver was reloaded below us."""


class Card(object):
    """What is known of one card between two samples."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.handle: "Any" = None
        self.identity: "Json" = {"index": index}
        self.readings = readings.Readings()
        self.last: "Json" = {}
        self.last_at = 0.0
        self.lost_until = 0.0
        self.lost_says = ""
        self.code: "int | None" = None
        """The NVML code with which the last sample of the whole card failed."""


class Gpus(object):
    """Samples all cards in a thread of its own and sends a ``gpus`` frame for each round.

    ``deadline``: seconds after which a card that does not answer is said to be in error.
    ``retry``: seconds between attempts to find a driver, or a card that was lost.
    """

    def __init__(
        self,
        host: "Host",
        send: "Callable[[Json], None]",
        complain: "Callable[[str], None]",
        interval: float = 1.0,
        deadline: float = 5.0,
        retry: float = 10.0,
    ) -> None:
        self.host = host
        self.interval = interval
        self.deadline = deadline
        self.retry = retry
        self.crew = Crew("gpus", self._round, min(1.0, deadline), host.monotonic, complain)
        self.settled = False
        """The first attempt at NVML is over, well or badly."""
        self._send = send
        self._complain = complain
        self._nvml: "Any" = None
        self._cards: "list[Card]" = []
        self._driver: "str | None" = None
        self._ready = False
        self._error: "str | None" = None
        self._retry_at = 0.0

    def owners(self) -> "frozenset[int]":
        """Process ids that NVML named in the last round; in a container they may be the host's."""
        pids = [process["pid"] for card in self._cards for process in card.last.get("processes") or ()]
        return frozenset(pids)

    def found(self) -> "tuple[Any, list[tuple[int, Any]]]":
        """The binding and (index, handle) of each card that answers; none before NVML is initialised."""
        cards = [(card.index, card.handle) for card in self._cards if card.handle is not None]
        return self._nvml, cards if self._ready else []

    def _round(self) -> float:
        began = self.host.monotonic()
        self._prepare(began)
        cards = [self._sample(card) for card in self._cards]
        if self._ready and self._cards and all(card.code in REINITIALISE for card in self._cards):
            self._error = readings.say(self._cards[0].code)
            self._let_go(began)
        frame: "Json" = {"t": "gpus", "at": self.host.now(), "cards": cards}
        if self._driver:
            frame["driver"] = self._driver
        if self._error:
            frame["error"] = self._error
        self._send(frame)
        self.settled = True
        return max(0.05, self.interval - (self.host.monotonic() - began))

    def _prepare(self, now: float) -> None:
        """Load the binding and initialise NVML, now or every ten seconds; leaves the reason in ``_error``."""
        if self._ready or now < self._retry_at:
            return
        try:
            self._nvml = self.crew.wait_for("import", self.host.nvml)
            self.crew.wait_for("nvmlInit", self._initialise)
        except Stuck as stuck:
            self._error = "NVML: no answer for %d s (%s)" % (self.crew.waited(stuck.args[0]), stuck.args[0])
            return
        except ImportError as error:
            self._error = "NVML's Python binding cannot be loaded: %s" % error
        except Exception as error:
            self._error = readings.say_init(error)
        else:
            self._ready = True
            self._error = None
            if not self._cards:
                self._error = "the driver finds no GPU"
                self._let_go(now)
            return
        self._retry_at = now + self.retry

    def _initialise(self) -> None:
        nvml = self._nvml
        nvml.nvmlInit()
        try:
            self._driver = readings.text(nvml.nvmlSystemGetDriverVersion())
            count = nvml.nvmlDeviceGetCount()
        except Exception:
            nvml.nvmlShutdown()
            raise
        kept = {card.index: card for card in self._cards}
        self._cards = [kept.get(index) or Card(index) for index in range(count)]
        for card in self._cards:
            card.handle = None
            card.lost_until = 0.0
            card.readings = readings.Readings()

    def _let_go(self, now: float) -> None:
        self._ready = False
        self._retry_at = now + self.retry
        try:
            self.crew.wait_for("nvmlShutdown", self._nvml.nvmlShutdown)
        except Exception:
            pass  # it is going away either way

    def _sample(self, card: Card) -> "Json":
        """One card as the frame has it: values, or its identity and why there are none."""
        if not self._ready:
            return dict(card.identity, error=self._error or "NVML is not initialised")
        try:
            values = self.crew.wait_for(card.index, self._read, card)
        except Stuck:
            waited = self.crew.waited(card.index)
            if waited < self.deadline and card.last:
                return dict(card.last, at=card.last_at)
            card.last = {}
            return dict(card.identity, error="no answer for %d s (%s)" % (waited, card.readings.doing))
        except Exception as error:  # a fault of ours must not take the other cards along
            self._complain("card %d: %s: %s" % (card.index, type(error).__name__, error))
            card.last = {}
            return dict(card.identity, error="%s: %s" % (type(error).__name__, error))
        if "error" not in values or len(values) > len(card.identity) + 1:
            card.last = values
            card.last_at = self.host.now()
        else:
            card.last = {}
        return values

    def _read(self, card: Card) -> "Json":
        """Ask for everything. Called where it may block."""
        now = self.host.monotonic()
        if now < card.lost_until:
            return dict(card.identity, error=card.lost_says)
        nvml = self._nvml
        card.code = None
        try:
            if card.handle is None:
                card.readings.doing = "handle"
                card.handle = nvml.nvmlDeviceGetHandleByIndex(card.index)
                card.identity.update(readings.identity(nvml, card.handle))
            values = card.readings.read(nvml, card.handle, now)
        except nvml.NVMLError as error:
            card.code = readings.code_of(error)
            card.handle = None
            card.lost_until = now + self.retry
            card.lost_says = readings.say(card.code, error)
            return dict(card.identity, error=card.lost_says)
        if "total_mib" in values:
            card.identity["total_mib"] = values["total_mib"]
        return dict(card.identity, **values)
