"""The hands: verbs that look at or change one thing on the host, each answered by one ``reply``.

A request has an ``id`` and, under the same value, a ``token``; the reply's ``value`` is an object. Times
are seconds since the epoch, a process is ``{"pid","start"}`` (start: field 22 of ``/proc/PID/stat``).
A *row* is ``{pid,start,started,ppid,sid,pgid,uid,user,state,comm,title,wchan,zombie_parent,nspid,
container}``; ``zombie_parent`` is ``{pid,comm}`` of who must reap a dead process, else null.

Reading:

``{"r":"family","pids":[{pid,start}],"run":token|null,"sure":true|absent}``
    ``{"members":[row + how],"doubtful":[row + how],"gone":[{pid,start}],"barred":[{pid,start,why}],
    "denied":n,"closed":[row]}``. ``how``: any of root, tree, session, group, run, cgroup, title. Doubtful:
    shares only the session or group of a dead leader. Barred: asked for, but never to be touched.
    Closed: the first of those denied.
``{"r":"alive","targets":[{pid,start}]}``
    ``{"alive":[row],"zombies":[row],"gone":[{pid,start}]}``. A zombie with a living thread is alive.
``{"r":"holders"}``
    ``{"holders":[row + kind,cards,fds,maps,above,protected,zombie_leader,heir_of],"devices":[path],
    "denied":n,"closed":[row],"unanswered":n}``. ``kind``: owner or holder. ``cards``: minor numbers.
    ``fds``: ``{"0":23,"uvm":4}``. ``above``: short names of its ancestors in its own session.
    ``heir_of``: dead pids that NVML still names and whose descriptors this process seems to have inherited.
``{"r":"leftovers"}``
    ``{"files":[{path,kind,size,age,uid,user,pid,why}],"bytes":n,"kept":[{path,why}],"more":n}``. ``more``:
    files that are not named, for want of room.
``{"r":"read_file","path","limit":524288,"offset":0}``
    ``{path,exists,data,sha256,truncated,stat:{kind,mode,uid,gid,user,group,size,mtime,ino,dev,nlink},entry,real,
    link,hf_cache,writable,xattrs:[name]}``. ``sha256`` is null where not the whole file was read.
``{"r":"stat_files","paths":[…],"head":64}``
    ``{"files":[{path,exists,kind,size,mtime,mode,uid,user,readable,link,real,head,error}]}``; a folder adds
    ``entries`` ``[[name,size]]``, a ``*.index.json`` adds ``shards`` ``[name]``.
``{"r":"probe","ports":[…],"paths":[…],"modules":[…],"python":"python3"}``
    ``{"ports":[{port,free,lingering,error,listeners:[row + address]}],"paths":[{path,folder,free_mib,
    total_mib,writable,error}],"shm":{total_mib,used_mib},"limits":{nofile,memlock,nproc: [soft,hard]},
    "python":{version,executable,modules:{name: version|null},error}|null}``. A limit of -1 is none.
``{"r":"bench_follow","run":token,"offset":0}``
    ``{run,alive,folder}``, and from then on ``bench`` frames ``{run,offset,events:[…],over,exit}``: what the
    run printed (``specdash.bench.events``) from that byte on; ``offset`` is where its last line ends.
``{"r":"launched","run":token}``
    By the launch's token (or its own, where it was asked under that): ``{found,pid,start,boot,at,exit,ended,
    alive,how,unit,log,argv,supervisor,error}``. ``exit``: as Python's return code (negative: a signal), null
    while it runs or where it is not known.

Any of them may name the ``boot`` that it is meant for: another one refuses it. ``signal`` must.

Changing (refused with the error ``watch-only`` where the agent was started to look only):

``{"r":"signal","signal":"TERM|KILL|INT|CONT","targets":[{pid,start}],"boot":…}``
    ``{"targets":[{pid,start,result,why}]}``; ``result``: sent, gone, another process, denied.
``{"r":"remove","paths":[…]}``
    ``{"files":[{path,result,size}]}``; ``result``: removed, or why not.
``{"r":"write_file","path","data","expect":sha256|null,"backup":true,"link":"replace|through"}``
    ``{path,entry,real,sha256,before,backup,notes:[…]}``. Without ``link`` a link of a Hugging Face cache is
    replaced, any other is written through. Errors begin with ``changed:`` where the file is not as expected.
``{"r":"restore","backup":id,"expect":sha256}``
    As ``write_file``; ``sha256`` is null where undoing meant removing.
``{"r":"launch","argv":[…],"env":{…},"inherit":true,"cwd","log","user","how":"process","name"}``
    ``{pid,start,boot,at,how,unit,log}``. ``how``: process, systemd, docker, tmux; without ``argv`` systemd
    and docker start the unit or container ``name``. ``env`` is added to our own unless ``inherit`` is false.
``{"r":"run","argv":[…],"cwd","env":{…},"limit":60}``
    ``{exit,timed_out,output,truncated,seconds}``: both streams' last 64 KiB. It goes on when the agent ends.
``{"r":"bench","workload":{…},"server":"pid:start"|null}``
    As ``launch`` answers. A workload of ``specdash.bench.plan``, or a command of ``loadscript``. ``server``:
    asked for the API key where our own environment has none. It goes on when the agent ends.
``{"r":"bench_stop","run":token}``
    ``{run,exit,killed}``: ended in order, so that its requests end on the server, too.
``{"r":"lock","who","what","take":false}``, ``{"r":"unlock"}``
    ``{"held":bool,"by":{who,what,pid,start,user,at}|null}``, ``{"released":bool}``. Not recorded by token.
``{"r":"syslog","text"}``
    ``{"logged":bool}``.

Every changing verb but the lock first claims its token by making a folder (its ``folder`` is in the answer
and may be removed). A token that comes again is answered from the record, with ``"repeat":true``. Where the
record has no answer and whoever claimed it is gone, the error begins with ``unfinished:``.
"""

import importlib
import threading

from specdash.agent import wire
from specdash.agent.patience import Patience
from specdash.agent.records import Record, Records, in_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from specdash.agent.host import Host

    Json = dict[str, Any]

READ, CHANGE, RECORDED = "read", "change", "recorded"
VERBS = {
    "family": ("family", READ),
    "alive": ("signals", READ),
    "holders": ("holders", READ),
    "leftovers": ("leftovers", READ),
    "read_file": ("files", READ),
    "stat_files": ("files", READ),
    "probe": ("probe", READ),
    "bench_follow": ("bench", READ),
    "launched": ("launch", READ),
    "signal": ("signals", RECORDED),
    "remove": ("leftovers", RECORDED),
    "write_file": ("rewrite", RECORDED),
    "restore": ("rewrite", RECORDED),
    "launch": ("launch", RECORDED),
    "run": ("launch", RECORDED),
    "bench": ("bench", RECORDED),
    "bench_stop": ("bench", RECORDED),
    "lock": ("lock", CHANGE),
    "unlock": ("lock", CHANGE),
    "syslog": ("syslog", RECORDED),
}
"""Verb -> the module that has a function of its name (loaded when first asked for), and its kind."""

MOST = 16
"""Requests at work at one time."""


class Acts(object):
    """Takes requests from the main loop and does each in a thread of its own.

    ``owners``: the process ids that NVML names. ``send`` queues a frame, from any thread.
    """

    def __init__(
        self,
        host: "Host",
        options: "Json",
        send: "Callable[[Json], None]",
        complain: "Callable[[str], None]",
        owners: "Callable[[], Iterable[int]]" = tuple,
    ) -> None:
        self.host = host
        self.options = options
        self.owners = owners
        self.records = Records(host)
        self.held: "Any" = None
        """The lock on this host, while this agent has it."""
        self._followed: "dict[str, int]" = {}
        self._send = send
        self._complain = complain
        self._threads: "set[threading.Thread]" = set()

    @property
    def verbs(self) -> "dict[str, Callable[[Json], None]]":
        """What the main loop calls for each request's name."""
        return dict.fromkeys(VERBS, self.take)

    def patience(self) -> Patience:
        """Reads of other processes that may never return, for one request."""
        return Patience()

    def tell(self, frame: "Json") -> None:
        """Queue a frame beside the replies."""
        self._send(frame)

    def follow(self, run: str) -> int:
        """Somebody follows this run from now on; whoever did so before ends."""
        self._followed[run] = self._followed.get(run, 0) + 1
        return self._followed[run]

    def follows(self, run: str, serial: int) -> bool:
        """Whether it is still they who follow it."""
        return self._followed.get(run) == serial

    def take(self, request: "Json") -> None:
        """Begin a request. Raises ``wire.BadRequest`` where it is refused."""
        module, kind = VERBS[request["r"]]
        if kind != READ and self.options.get("watch"):
            raise wire.BadRequest("watch-only")
        if not isinstance(request.get("id"), str):
            raise TypeError("a request with an answer needs an id")
        if request.get("boot", self.host.boot_id()) != self.host.boot_id():
            raise wire.BadRequest("another boot: the host was restarted since this was planned")
        if len(self._threads) >= MOST:
            raise wire.BadRequest("busy: %d requests are at work" % MOST)
        thread = threading.Thread(target=self._work, args=(request, module, kind), name=request["r"])
        thread.daemon = True
        self._threads.add(thread)
        thread.start()

    def settle(self, seconds: float) -> None:
        """Let changes that were begun come to their end, for so long at most."""
        deadline = self.host.monotonic() + seconds
        for thread in [thread for thread in tuple(self._threads) if VERBS[thread.name][1] == RECORDED]:
            thread.join(max(0.0, deadline - self.host.monotonic()))

    def _work(self, request: "Json", module: str, kind: str) -> None:
        frame: "Json" = {"t": "reply", "at": self.host.now(), "id": request["id"]}
        try:
            frame.update(self._answer(request, module, kind))
            if len(wire.encode(frame)) > wire.LONGEST_LINE:
                raise wire.BadRequest("%s: the answer is longer than a line may be" % request["r"])
        except Exception as error:
            frame.pop("value", None)
            frame.update(ok=False, error=self._say(request, error))
        finally:
            self._threads.discard(threading.current_thread())
        self._send(dict(frame, at=self.host.now()))

    def _answer(self, request: "Json", module: str, kind: str) -> "Json":
        """``ok`` with a ``value``, or an error in words. Whatever it raises is answered as an error, too."""
        verb = getattr(importlib.import_module("specdash.agent." + module), request["r"])
        if kind != RECORDED:
            return {"ok": True, "value": verb(self, request)}
        record, ours = self.records.claim(request.get("token") or request["id"], request)
        if not ours:
            return record.repeated(request, self._resumed)
        try:
            answer = {"ok": True, "value": dict(verb(self, request, record), folder=record.folder)}
        except Exception as error:
            answer = {"ok": False, "error": self._say(request, error)}
        record.settle(answer)
        if module != "syslog":
            self._tell_syslog(request, record, answer)
        return answer

    def _resumed(self, record: Record) -> "Json | None":
        """The answer to a start whose agent is gone, where the start itself went on."""
        if record.read("launch") is None:
            return None
        resumed: "Json | None" = importlib.import_module("specdash.agent.launch").resumed(self, record)
        return resumed

    def _tell_syslog(self, request: "Json", record: Record, answer: "Json") -> None:
        try:
            importlib.import_module("specdash.agent.syslog").tell(self, request, record, answer)
        except Exception as error:  # it is done and must be answered, with or without a line in the log
            self._complain("syslog: %s: %s" % (type(error).__name__, error))

    def _say(self, request: "Json", error: Exception) -> str:
        """An error for the operator; one that is our own fault is told as such, too."""
        if isinstance(error, wire.BadRequest):
            return str(error)
        if isinstance(error, OSError):
            return in_words(error)
        text = "%s: %s: %s" % (request["r"], type(error).__name__, error)
        if not isinstance(error, (KeyError, TypeError, ValueError, AttributeError, OverflowError)):
            self._complain(text)
        return text
