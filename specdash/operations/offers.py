"""What a screen may do to one host: for each key a plan, ready to be looked at, and the way to carry it out.

See ``offer.Offer``; nothing is changed before ``perform``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Set
from typing import Final, Protocol

import msgspec

from specdash.errors import SpecdashError
from specdash.monitor.alerts import KNOWN_FIXES
from specdash.monitor.state import Server
from specdash.operations import clean, launch, patch, stop
from specdash.operations.acts import Acts, Hands
from specdash.operations.checks import Line, told
from specdash.operations.desk import Desk
from specdash.operations.found import Memory
from specdash.operations.journal import Journal
from specdash.operations.lastend import of_flags
from specdash.operations.launch import Wish
from specdash.operations.offer import Also, Known, Offer, Option, becomes, red_of
from specdash.operations.plan import Plan
from specdash.operations.remedies import Fix, fixes
from specdash.operations.rules import Rules
from specdash.operations.sight import Sight, look
from specdash.operations.sightings import Sightings
from specdash.operations.starts import Starts, beside
from specdash.operations.stop import ended_by
from specdash.operations.survey import Survey, survey
from specdash.operations.work import Follow
from specdash.profile.document import Profile

MOST_VARIANTS: Final = 4
"""So many are offered beside a restart; the others are in the palette."""
PLAIN: Final[Mapping[Known, tuple[str, str]]] = {
    "profile": ("profile", "as the profile says"),
    "seen": ("as it was", "the start that was seen"),
}
"""What the button says of a start that is no variant, and what it means."""


class SecondTarget(Protocol):
    """The machine on which the server's container runs."""

    async def connect(self) -> Acts:
        """It, connected. Raises ``SpecdashError`` where it cannot be reached."""

    async def stop(self) -> None:
        """Let go of it."""


class Operations:
    """Everything that may be done to one host.

    What makes an offer raises ``SpecdashError`` where there is nothing to offer, with what helps.
    """

    def __init__(
        self,
        acts: Acts,
        journal: Journal,
        *,
        desk: Desk | None = None,
        memory: Memory | None = None,
        profile: Profile | None = None,
        host_name: str | None = None,
        outside: SecondTarget | None = None,
        ends: Callable[[str], None] = lambda server_key: None,
    ) -> None:
        self.desk = desk or Desk(acts, journal)
        self.desk.subscribe(self._say_who_ends)
        self.sightings = Sightings(acts, memory or Memory())
        self.profile = profile or Profile()
        self._host_name = host_name
        """The host's name in the profile."""
        self._acts, self._journal = acts, journal
        self._starts = Starts(acts, journal, self.sightings, self.profile, host_name)
        self._outside = outside
        """The profile's ``cleanup_via``."""
        self._red: Mapping[str, str] = {}
        """What was red in the newest preflight that was shown: key → line."""
        self._ends = ends
        """Told the key of each server when a plan begins to end it."""
        self._ending: set[str] = set()

    @property
    def acts(self) -> Acts:
        """The host itself."""
        return self._acts

    @property
    def journal(self) -> Journal:
        """Where plans are kept."""
        return self._journal

    @property
    def host_name(self) -> str | None:
        """The host's name in the profile."""
        return self._host_name

    @property
    def variants(self) -> tuple[str, ...]:
        """Names of the profile's variants of this host's servers."""
        return self._starts.variants

    def key_env(self, server: Server) -> str | None:
        """The variable that holds a found server's API key, where the profile names one."""
        return self._starts.key_env(server)

    def starts(self, server: Server | None) -> Known | None:
        """Why it is known how to start this server, or without one the last: cheap, asked at any time."""
        return self._starts.known(server)

    def rules(self, forced: Set[str] = frozenset()) -> Rules:
        """What must be typed on this host, and what is forced."""
        host = self.profile.hosts.get(self._host_name) if self._host_name else None
        return Rules(production=bool(host and host.production), forced=tuple(sorted(forced)))

    # ------------------------------------------------------------------ what can be done

    async def kill(self, server: Server) -> Offer:
        """Stop a server and verify its cards."""
        plan = await stop.prepare(self._acts, server, rules=self.rules())
        self.sightings.keep(await look(Hands(self._acts), server))
        return Offer(plan=plan)

    async def clean(self) -> Offer:
        """End what dead servers left on the cards."""
        outside, trouble = await self._second()
        seen = await survey(self._acts, outside)
        seen = msgspec.structs.replace(seen, warnings=(*trouble, *seen.warnings))
        self.desk.outside = outside
        return self._cleaning(seen, outside, clean.by_default(seen, self.rules()))

    async def _second(self) -> tuple[Acts | None, tuple[str, ...]]:
        """The second target, and why it is not there."""
        if self._outside is None:
            return None, ()
        try:
            return await self._outside.connect(), ()
        except SpecdashError as error:
            return None, (f"the host outside cannot be looked at: {error}",)

    async def stop(self) -> None:
        """Look no further, let go of the second target."""
        self.sightings.stop()
        if self._outside is not None:
            await self._outside.stop()

    def _cleaning(self, seen: Survey, outside: Acts | None, chosen: set[int]) -> Offer:
        async def again(on: Set[str]) -> Offer:
            return self._cleaning(seen, outside, set(map(int, on)))

        plan = clean.plan_for(self._acts, seen, outside=outside, chosen=chosen, rules=self.rules())
        options = tuple(
            Option(key=str(one.holder.pid), label=_owner(one.line, one.foreign), on=one.holder.pid in chosen)
            for one in seen.offered
        )
        # What is ticked or listed is not warned of; where nothing can be ticked the refusal says it all.
        shown = ("not touched: ", "left alone: ", *(() if options else (clean.NOTHING,)))
        told = tuple(line for line in plan.warnings if not line.startswith(shown))
        plan = msgspec.structs.replace(plan, warnings=told)
        if not any(step.risk == "hard" for step in plan.steps):
            nothing = "nothing is chosen" if options else "no owner is found that could be ended"
            plan = msgspec.structs.replace(plan, refusal=f"there is nothing to clean: {nothing}")
        return Offer(plan=plan, options=options, about="owners", left_alone=seen.listed, again=again)

    async def restart(
        self, server: Server | None, *, variant: str | None = None, env: Mapping[str, str] | None = None
    ) -> Offer:
        """Stop a server or what it left behind, and start it again; start it where nothing of it lives."""
        return await self._restart(server, variant, env or {}, frozenset())

    async def _restart(
        self, server: Server | None, variant: str | None, env: Mapping[str, str], forced: Set[str]
    ) -> Offer:
        async def again(on: Set[str]) -> Offer:
            return await self._restart(server, variant, env, frozenset(on))

        async def fix() -> Offer:
            return await self.patch(server)

        rules = self.rules(forced)
        sight = await self._starts.living(server)
        wish = self._starts.wish(server, sight, variant)
        if env:
            changed = msgspec.structs.replace(wish.launch, env={**wish.launch.env, **env})
            wish = msgspec.structs.replace(wish, launch=changed, otherwise=True)
        elif server is not None and (sight is None or server.gone_at is not None) and not wish.otherwise:
            wish = msgspec.structs.replace(wish, last_end=of_flags(server.diagnoses))
        if sight is not None:
            plan = await launch.prepare_restart(self._acts, sight, wish, rules=rules)
        else:
            plan = await launch.prepare(self._acts, wish, rules=rules, kind="restart")
        self._red = red = red_of(plan)
        options = tuple(Option(key=key, label=line, on=key in forced) for key, line in red.items())
        known = (Also("Patch", "the known fix, as a diff", fix),) if becomes(red) else ()
        also = (*known, *self._others(server, sight, wish, variant))
        by = None if wish.otherwise else self._starts.known(server) or "seen"
        return Offer(plan=plan, options=options, also=also, again=again, variant=variant, by=by)

    def _others(
        self, server: Server | None, sight: Sight | None, shown: Wish, variant: str | None
    ) -> Iterator[Also]:
        """Beside the start that is shown: the plain one, and the profile's variants; and how they differ."""

        def otherwise(name: str | None) -> Callable[[], Awaitable[Offer]]:
            return lambda: self.restart(server, variant=name)

        by = self._starts.known(server) if shown.otherwise else None
        if by is not None:
            words = beside(self._starts.wish(server, sight, None), shown)
            label, says = PLAIN[by]
            yield Also(label, f"{says}, {words}", otherwise(None))
        names = [name for name in self.variants if name != variant]
        for name in names[: MOST_VARIANTS - (by is not None)]:
            words = beside(self._starts.wish(server, sight, name), shown)
            yield Also(name, f"a variant of the profile, {words}", otherwise(name))

    async def check(
        self, server: Server | None, *, variant: str | None = None, forced: Set[str] = frozenset()
    ) -> tuple[Line, ...]:
        """What a start would meet now; beside a living server, what does not depend on its end."""
        sight = await self._starts.living(server)
        wish = self._starts.wish(server, sight, variant)
        if sight is None:
            wish = await launch.informed(self._acts, wish)
        lines = await launch.examined(self._acts, wish, self.rules(forced), lasting=sight is not None)
        self._red = {line.key: told(line) for line in lines if line.mark == "error"}
        return lines

    async def patch(self, server: Server | None) -> Offer:
        """The known fix of what a server died of, or of what the newest preflight found red."""
        key = self.fixable(server)
        if key is None:
            raise SpecdashError(
                "nothing seen so far has a known fix",
                "R checks before a start, and may find one; "
                f"`specdash patch {self._acts.state.typed} FILE KEY=VALUE` sets a value, undo takes it back",
            )
        found = self._starts.found(server)
        known = await fixes(Hands(self._acts), key, found.launch)
        files = [fix for fix in known if fix.path]

        def otherwise(fix: Fix) -> Callable[[], Awaitable[Offer]]:
            async def other() -> Offer:
                return await self._restart(server, None, fix.env, frozenset())

            return other

        also = tuple(
            Also("Override", f"{fix.title}: {fix.says}", otherwise(fix)) for fix in known if not fix.path
        )
        if files and files[0].path:
            try:
                plan = await patch.prepare(self._acts, files[0].path, files[0].edits, rules=self.rules())
            except patch.NothingToDo:
                raise SpecdashError("the known fix is in place already", "R starts the server") from None
            return Offer(plan=plan, also=also)
        if also:
            return await also[0].make()
        raise SpecdashError(f"no fix of {key} can be made here", "the log says more")

    async def undo(self) -> Offer:
        """Take the newest patch of this host back."""
        plan, _ = patch.undo(self._acts, self._journal, rules=self.rules())
        return Offer(plan=plan)

    def fixable(self, server: Server | None) -> str | None:
        """The diagnosis that ``patch`` would answer; None where no fix is known."""
        diagnoses = server.diagnoses if server is not None else ()
        mine = {diagnosis.key for diagnosis in diagnoses if diagnosis.root} | becomes(self._red)
        last = self.desk.plan
        if last is not None and last.failed is not None:
            mine |= becomes(red_of(last))
            if isinstance(last.failed.work, Follow):
                mine.add(str(last.failed.result.get("diagnosis")))
        return next(iter(sorted(mine & KNOWN_FIXES)), None)

    def cut_off(self) -> Offer | None:
        """The newest plan for this host whose process has died; one of an earlier boot is given up."""
        boot = self._acts.state.host.boot if self._acts.state.host else None
        for plan in self.desk.cut_off():
            if plan.boot == boot:
                return Offer(plan=plan, resumes=True)
            self._journal.abandon(plan, "the host was rebooted")
        return None

    # ------------------------------------------------------------------ doing it

    async def perform(self, plan: Plan) -> Plan:
        """Carry it out; what was cut off before it is not taken up any more. Raises as ``Desk.perform``."""
        self.forget(besides=plan.id)
        plan = await self.desk.perform(plan)
        if plan.kind == "undo" and plan.ok:
            undone = self._journal.newest(plan.target, "patch")
            if undone is not None:
                self._journal.undone(undone.id, plan.id)
        if plan.kind in ("patch", "undo"):
            self._red = {}
        return plan

    def _say_who_ends(self) -> None:
        plan = self.desk.plan
        for server in ended_by(plan, self._acts.state.servers) if plan is not None else ():
            if server.key not in self._ending:
                self._ending.add(server.key)
                self._ends(server.key)

    def forget(self, *, besides: str | None = None) -> None:
        """Plans that were cut off are not taken up any more."""
        for old in self.desk.cut_off():
            if old.id != besides:
                self._journal.abandon(old, f"for {besides}" if besides else "as the operator said")


def _owner(line: str, foreign: bool) -> str:
    return f"{line}  (not ours)" if foreign else line
