"""What the host showed while it was measured: clocks, power, heat, throttling, strangers, the server's queue.

Fed with pictures of the host; each sample of the cards and each report of the server counts once.
"""

from __future__ import annotations

from collections import Counter

from specdash.bench.fingerprint import cards_of
from specdash.bench.record import MOST_BEYOND, During, Seen, crowd
from specdash.monitor.state import Gpu, HostState, Server

SMALL_MIB = 100
"""Whoever holds less of a card (a display server) does not compute there: a context alone takes more."""


class Extent:
    """Lowest, mean and highest of values."""

    def __init__(self) -> None:
        self._low = self._high = self._sum = 0.0
        self._n = 0

    def take(self, value: float | None) -> None:
        """One value; None is none."""
        if value is None:
            return
        self._low = min(self._low, value) if self._n else value
        self._high = max(self._high, value) if self._n else value
        self._sum += value
        self._n += 1

    @property
    def seen(self) -> Seen | None:
        """None where no value came."""
        return Seen(low=self._low, mean=self._sum / self._n, high=self._high) if self._n else None


class Witness:
    """Looks at one server and its cards for as long as a run takes."""

    def __init__(self, server_key: str, ours: int | None = None) -> None:
        """``ours``: the most requests that we have at the server at once; None: not known."""
        self._key, self._ours = server_key, ours
        self._cards_at: float | None = None
        self._figures_at: float | None = None
        self._samples = 0
        self._now = 0.0
        self._blind_from: float | None = None
        self._blind = 0.0
        self._reports = self._beyond = 0
        self._at_once = Extent()
        self._throttled: Counter[str] = Counter()
        self._foreign: set[int] = set()
        self._of_cards = {name: Extent() for name in ("sm_mhz", "power_w", "temp_c", "util")}
        self._of_server = {name: Extent() for name in ("running", "waiting", "kv_pct", "accept_len")}

    def look(self, state: HostState) -> None:
        """A picture of the host; one that shows nothing new changes nothing."""
        self._look_at_link(state)
        server = next((server for server in state.servers if server.key == self._key), None)
        if server is None:
            return
        if state.gpus_at is not None and state.gpus_at != self._cards_at:
            self._cards_at = state.gpus_at
            self._look_at_cards(cards_of(state, server), server)
        figures = server.figures
        if figures.at is not None and figures.at != self._figures_at:
            if self._figures_at is not None:  # the first is of before
                self._count(figures.running, figures.waiting)
            self._figures_at = figures.at
            for name, extent in self._of_server.items():
                extent.take(getattr(figures, name))

    def _count(self, running: int | None, waiting: int | None) -> None:
        if running is None:
            return
        at_once = running + (waiting or 0)
        self._reports += 1
        self._at_once.take(at_once)
        self._beyond += self._ours is not None and at_once > self._ours

    @property
    def _share_beyond(self) -> float:
        return self._beyond / self._reports if self._beyond > 1 else 0.0  # one alone may be a late gauge

    @property
    def crowd(self) -> str | None:
        """That somebody else uses the server, as far as its queue shows it; None: it does not."""
        seen = self._at_once.seen
        if seen is None or self._ours is None or self._share_beyond <= MOST_BEYOND:
            return None
        return crowd(seen.high, self._ours)

    def _look_at_link(self, state: HostState) -> None:
        self._now = state.now
        if state.link.state in ("live", "stale"):
            self._blind, self._blind_from = self._unseen, None
        elif self._blind_from is None:
            self._blind_from = state.link.heard_at or state.now

    @property
    def _unseen(self) -> float:
        since = self._blind_from
        return self._blind + (max(0.0, self._now - since) if since is not None else 0.0)

    def _look_at_cards(self, cards: list[Gpu], server: Server) -> None:
        if not cards:
            return
        self._samples += 1
        self._throttled.update({reason for gpu in cards for reason in gpu.card.throttle})
        for gpu in cards:
            for name, extent in self._of_cards.items():
                extent.take(getattr(gpu.card, name))
            if any(owner.server == server.key for owner in gpu.owners):
                self._foreign |= {
                    owner.pid
                    for owner in gpu.owners
                    if owner.server != server.key and (owner.mib or 0) >= SMALL_MIB
                }

    @property
    def during(self) -> During:
        """What was seen so far."""
        cards, figures = self._of_cards, self._of_server
        accept = figures["accept_len"].seen
        return During(
            samples=self._samples,
            blind_s=round(self._unseen, 1),
            at_once=self._at_once.seen,
            beyond=self._share_beyond,
            sm_mhz=cards["sm_mhz"].seen,
            power_w=cards["power_w"].seen,
            temp_c=cards["temp_c"].seen,
            util_pct=cards["util"].seen,
            throttled={reason: many / self._samples for reason, many in self._throttled.items()},
            foreign=tuple(sorted(self._foreign)),
            running=figures["running"].seen,
            waiting=figures["waiting"].seen,
            kv_pct=figures["kv_pct"].seen,
            accept_length=accept.mean if accept else None,
        )
