"""What an engine's TOML file may say: the typed form of a grammar. Plain data, nothing compiled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from specdash.monitor.words import PHASES, Happening, Part, Phase, Role

Kind: TypeAlias = Literal[
    "launch",  # a new start begins here: everything known of an earlier one in the same file is dropped
    "milestone",  # a phase begun, progressed or ended
    "closes",  # ends whatever of the phase is open, for every role and part
    "ready",  # the engine says that it serves
    "bar",  # a progress bar: groups done, total, and text for its position
    "figures",  # a batch or statistics line: groups tok_s, prompt_tok_s, running, waiting, kv, accept_len
    "access",  # a line of the HTTP access log
    "stop",  # asked to end, or ending in order
    "ended",  # the process is going now
    "killed",  # the process is gone, and unless it was asked to end it was killed
    "crash",  # it died, or never will serve
    "bind_error",  # the HTTP port could not be had: a ready line after this is false
    "heartbeat",  # is repeated whatever happens: neither progress nor a sign of life
    "nccl",  # chatter of the communication library: life while ranks find each other
    "draft",  # from here on the draft model is loaded
    "facts",  # nothing happens, but named groups tell something
]

FACTS: tuple[str, ...] = ("version", "port", "bind", "model", "served_name")
"""Named groups that any marker may have: what they catch becomes a fact of this start."""

Text: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]


class Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base: a misspelt key in a grammar is an error, not a silent default."""


class Marker(Table, frozen=True, kw_only=True):
    """One kind of line. ``match`` is searched in the text behind the engine's prefix."""

    name: Text
    kind: Kind = "milestone"
    seek: tuple[Text, ...]
    """Plain strings, one of which stands in every such line: searched in bytes, before anything else."""
    match: Text
    phase: Phase | None = None
    """Of a crash: the phase that it proves, where nothing else in the log tells."""
    event: Happening | None = None
    role: Role | None = None
    """None: by order. A rank's first load, KV cache and capture are the target's, the next the draft's."""
    part: Part | None = None
    unit: str | None = None
    """What a bar counts."""
    completes: bool = False
    """A bar whose 100 % ends its item: nothing else says so."""
    once: bool = False
    """Counts once in a start, and only before it is ready."""
    after: Phase | None = None
    """Counts only once something of this phase has been seen."""
    alone: bool = False
    """Counts only from the main process (no rank in the prefix)."""
    bare: bool = False
    """May come without the engine's prefix. What tells of a death may always."""
    counted: bool = False
    """Each such line is one step of its item; no milestone of its own."""
    continues: bool = False
    """A begin that is only progress where the phase is open already."""
    facts: bool = False
    """The line is a dump of arguments: read the ``[facts]`` from it."""
    idle: bool = False
    """Of a figures line: the batch that ends an idle spell (group ``idle``); the next rate is too low."""
    serves: bool = False
    """Such lines appear only once the server serves."""
    late: bool = False
    """Of a figures line: it sums up the seconds before it, and may come when the last token is long past."""
    speculation: bool = False
    """Of a figures line: tells of speculation only, and leaves the other figures alone."""
    examples: tuple[Text, ...]


class Lines(Table, frozen=True, kw_only=True):
    """The shape of a line."""

    prefix: Text
    """Searched anywhere in the line (a record may be glued to an open bar). Groups: time, and optionally
    level, proc, rank."""
    glue: tuple[Text, ...] = ()
    """Plain strings without which a prefix further inside the line is not searched for; none: always."""
    rank: str | None = None
    """Searched in group ``proc``; group ``rank`` is the rank, ``_`` read as blank; ``number``: ``rank 3``."""
    actor: str | None = None
    """Searched in group ``proc``: workers that are told apart by their pid alone."""
    short: Mapping[str, str] = {}
    """Names of processes, as far as the first ``_``, and what a narrow view calls them."""
    hot: str | None = None
    """Begins behind the prefix; groups access and figures: what a serving log consists of, read fast."""
    hot_bare: bool = False
    """Such lines come without a prefix, too."""


class Detect(Table, frozen=True, kw_only=True):
    """How a log of this engine is known by its first lines; searched in whole lines."""

    lines: tuple[Text, ...] = ()


class Facts(Table, frozen=True, kw_only=True):
    """Names under which an argument dump holds each fact, the best first."""

    port: tuple[str, ...] = ()
    bind: tuple[str, ...] = ()
    model: tuple[str, ...] = ()
    served_name: tuple[str, ...] = ()
    tp: tuple[str, ...] = ()
    pp: tuple[str, ...] = ()
    dp: tuple[str, ...] = ()
    ep: tuple[str, ...] = ()
    dp_inside_tp: tuple[str, ...] = ()
    """True: the data-parallel groups share the tensor-parallel ranks."""
    nodes: tuple[str, ...] = ()
    spec_method: tuple[str, ...] = ()
    spec_steps: tuple[str, ...] = ()
    spec_steps_word: str = "steps"
    spec_draft: tuple[str, ...] = ()
    spec_within: str | None = None
    """The argument whose value holds the ``spec_…`` names, where they are not arguments themselves."""
    skip: Mapping[str, tuple[Phase, ...]] = {}
    """Argument → phases that do not come when it is True."""


class Processes(Table, frozen=True, kw_only=True):
    """Process titles. All are searched."""

    main: str | None = None
    """In the command line of the process that answers HTTP."""
    member: str | None = None
    """In the title of any other process of the server."""
    rank: str | None = None
    """In the title of a worker; group ``rank``."""
    helpers: tuple[str, ...] = ()
    """In command lines of processes that only help (resource tracker, compile workers): folded in views."""
    environment: str | None = None
    """In the command line of one that kept its environment readable."""


class Endpoint(Table, frozen=True, kw_only=True):
    """A path of the HTTP interface and what its answers mean."""

    path: Text
    use: Literal["health", "models", "metrics", "loads", "ready", "info", "token"]
    since: str | None = None
    """First version that has it, or has it with this meaning."""
    until: str | None = None
    """Last one."""
    codes: Mapping[str, str] = {}
    """Status code, ``refused`` or ``timeout`` → what that means."""
    note: str | None = None


class Rung(Table, frozen=True, kw_only=True):
    """One rung of a stop ladder: a signal, for whom, and how long it may take."""

    signal: Literal["TERM", "INT", "KILL"]
    to: Literal["main", "group", "titled", "stopped"]
    """``titled``: whose title ``title`` is found in; ``stopped``: in process state T. SIGKILL to the group is
    repeated until nothing comes any more."""
    title: str | None = None
    wait_s: float = 0.0
    wait_flag: str | None = None
    """A flag of the server whose value, in seconds, lengthens the grace."""
    says: str = ""
    """What it does, for the plan."""


class Stop(Table, frozen=True, kw_only=True):
    """How this engine is stopped, by the state it is in. An empty ladder: the one for ``serving``."""

    serving: tuple[Rung, ...] = ()
    starting: tuple[Rung, ...] = ()
    """Before the port opens."""
    hung: tuple[Rung, ...] = ()
    """After its watchdog spoke, or with a rank in process state T."""
    orphaned: tuple[Rung, ...] = ()
    """Workers without a main process."""
    orphaned_stopped: tuple[Rung, ...] = ()


class Spec(Table, frozen=True, kw_only=True):
    """A whole grammar file."""

    name: Text
    title: Text
    include: tuple[Text, ...] = ()
    """Files of this package whose markers hold here, too: ``uvicorn``."""
    order: tuple[Phase, ...] = PHASES
    """In which order this engine passes its phases."""
    optional: tuple[Phase, ...] = ()
    """Phases that only some starts have: never expected, only shown."""
    default_port: int | None = None
    warmup_tokens: int = 0
    """Tokens that its own warm-up request generates at most, for each data-parallel replica."""
    warmup_skip: str | None = None
    """The flag that leaves the warm-up out."""
    detect: Detect = Detect()
    lines: Lines
    facts: Facts = Facts()
    processes: Processes = Processes()
    endpoint: tuple[Endpoint, ...] = ()
    marker: tuple[Marker, ...] = ()
    signature: tuple[Mapping[str, Any], ...] = ()
    """Failure signatures; typed by whoever diagnoses. Their ``seek`` strings are sought as well."""
    diagnosis: Mapping[str, Any] = {}
    """Words of diagnoses that only this engine's signatures name."""
    limits: Mapping[str, Any] = {}
    """Quiet limits that differ from the common ones."""
    stop: Stop = Stop()
