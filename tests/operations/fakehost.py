"""The agent's verbs over a world of dictionaries; every changing one keeps what it did for its token."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from specdash.errors import RequestError
from specdash.monitor.documents import Diagnosis, Verdict
from specdash.monitor.serverparts import Lamp, LampSays, LogSource, Rank
from specdash.monitor.state import Server
from tests.operations.fakeworld import Proc, World

__all__ = ["FakeHost", "Proc", "bystanders", "diagnosis", "server", "sglang"]


class FakeHost(World):
    """A host as an operation sees it. ``fault`` may cut a request off at any place."""

    # ------------------------------------------------------------------ requests

    async def ask(self, request: Mapping[str, Any], *, token: str | None = None) -> Any:
        self._ids += 1
        full = {**request, "token": token or f"auto-{self._ids}"}
        self.asked.append(str(request["r"]))
        if self.fault:
            self.fault(self, full, "before")
        try:
            if request.get("boot", self.boot) != self.boot:
                raise RequestError("another boot: the host was restarted since this was planned")
            answer = self._do(full)
        except RequestError:
            if self.fault:
                self.fault(self, full, "after")
            raise
        if self.fault:
            self.fault(self, full, "after")
        return json.loads(json.dumps(answer))

    def _do(self, request: dict[str, Any]) -> Any:
        verb = request["r"]
        if verb not in ("signal", "remove", "write_file", "restore", "launch", "run", "token"):
            return getattr(self, f"do_{verb}")(request)
        token = request["token"]
        wish = json.dumps({k: v for k, v in request.items() if k != "token"}, sort_keys=True)
        if token in self.records:
            digest, answer = self.records[token]
            if digest != wish:
                raise RequestError("this token was used for another request")
            if answer is None:
                raise RequestError("unfinished: begun by an agent that is gone")
            if "error" in answer:
                raise RequestError(answer["error"])
            return {**answer, "repeat": True}
        self.records[token] = (wish, None)
        try:
            answer = getattr(self, f"do_{verb}")(request)
        except RequestError as error:
            self.records[token] = (wish, {"error": error.message})
            raise
        self.records[token] = (wish, answer)
        return answer

    def row(self, proc: Proc) -> dict[str, Any]:
        dead = proc.state == "Z"
        return {
            "pid": proc.pid,
            "start": proc.start,
            "ppid": proc.ppid,
            "uid": proc.uid,
            "user": proc.user,
            "state": proc.state,
            "comm": proc.title.split(" ")[0][:15],
            "title": proc.title,
            "wchan": "nv_wait" if proc.state == "D" else None,
            "container": proc.container,
            "zombie_parent": {"pid": proc.ppid, "comm": "bash"} if dead else None,
            "nspid": proc.nspid,
        }

    def do_family(self, request: dict[str, Any]) -> Any:
        names = {self.procs[p["pid"]].family for p in request["pids"] if p["pid"] in self.procs}
        names |= {f for p in request["pids"] if (f := self._families.get((p["pid"], p["start"])))}
        mine = [p for p in self.procs.values() if p.family and p.family in names]
        doubtful = [p for p in mine if p.alike and request.get("sure")]
        members = [{**self.row(p), "how": ["tree"]} for p in mine if p not in doubtful]
        return {"members": members, "doubtful": [self.row(p) for p in doubtful], "denied": 0}

    @property
    def _families(self) -> dict[tuple[int, int], str]:
        known: dict[tuple[int, int], str] = self.__dict__.setdefault("_known", {})
        known.update({(p.pid, p.start): p.family for p in self.procs.values() if p.family})
        return known

    def remember(self) -> None:
        """A session outlives its leader: the dead still lead to the living of their family."""
        _ = self._families

    def do_alive(self, request: dict[str, Any]) -> Any:
        found = [self.procs.get(t["pid"]) for t in request["targets"]]
        rows = [p for p, t in zip(found, request["targets"], strict=True) if p and p.start == t["start"]]
        living = [self.row(p) for p in rows if p.state != "Z"]
        return {"alive": living, "zombies": [self.row(p) for p in rows if p.state == "Z"], "gone": []}

    def do_signal(self, request: dict[str, Any]) -> Any:
        self.remember()
        return {"targets": [self._signal(request["signal"], target) for target in request["targets"]]}

    def _signal(self, signal: str, target: dict[str, int]) -> dict[str, Any]:
        proc = self.procs.get(target["pid"])
        result = "sent"
        if proc is None or proc.state == "Z":
            result = "gone"
        elif proc.start != target["start"]:
            result = "another process"
        elif self.uid != 0 and proc.uid != self.uid:
            result = "denied"
        else:
            self.effects.append((signal, proc.pid))
            if signal == "KILL":
                self.end(proc)
            elif proc.obeys is not None and proc.state != "T":
                proc.ends_at = self.clock.now + proc.obeys
                self.pass_time()
        return {**target, "result": result, "why": None}

    def do_holders(self, request: dict[str, Any]) -> Any:
        rows = [
            {
                **self.row(p),
                # As the real agent says it: an heir only has the device open, and is no owner by NVML.
                "kind": "holder" if p.heir_of else p.kind,
                "cards": [p.gpu],
                "protected": p.protected,
                "zombie_leader": False,
                "heir_of": list(p.heir_of),
                "above": list(p.above),
            }
            for p in self.procs.values()
            if p.gpu is not None and (self.sees_containers or p.container in (None, self.container))
        ]
        return {"holders": rows, "denied": 0, "unanswered": 0}

    def do_leftovers(self, request: dict[str, Any]) -> Any:
        return {"files": self.leftovers, "bytes": 0, "kept": []}

    def do_remove(self, request: dict[str, Any]) -> Any:
        known = {file["path"] for file in self.leftovers}
        self.leftovers = [file for file in self.leftovers if file["path"] not in request["paths"]]
        gone = [path for path in request["paths"] if path in known]
        self.effects += [("remove", path) for path in gone]
        return {"files": [{"path": p, "result": "removed", "size": 1} for p in gone]}

    def do_read_file(self, request: dict[str, Any]) -> Any:
        path = request["path"]
        data = self.files.get(path)
        if data is None:
            return {
                "path": path,
                "exists": False,
                "data": "",
                "sha256": None,
                "truncated": False,
                "stat": None,
            }
        begin = request.get("offset", 0)
        cut = data[begin : begin + request["limit"]]
        return {
            "path": path,
            "exists": True,
            "data": base64.b64encode(cut).decode(),
            "sha256": hashlib.sha256(data).hexdigest() if cut == data else None,
            "truncated": cut != data,
            "stat": {"kind": "file", "size": len(data), "nlink": 1},
            "hf_cache": path in self.hf_links,
            "link": "../../blobs/x" if path in self.hf_links else None,
            "writable": True,
        }

    def do_stat_files(self, request: dict[str, Any]) -> Any:
        return {"files": [self._stat(path, request["head"]) for path in request["paths"]]}

    def _stat(self, path: str, head: int) -> dict[str, Any]:
        if path.endswith("/cwd"):
            return {"path": path, "exists": True, "kind": "folder", "real": "/srv", "link": "/srv"}
        if path in self.folders:
            entries = [[name, size] for name, size in self.folders[path].items()]
            return {"path": path, "exists": True, "kind": "folder", "real": path, "entries": entries}
        if path in self.files:
            data = self.files[path]
            row = {"path": path, "exists": True, "kind": "file", "size": len(data), "real": path}
            row["head"] = base64.b64encode(data[:head]).decode()
            if path.endswith(".index.json"):
                row["shards"] = sorted(set(json.loads(data)["weight_map"].values()))
            return row
        folder, _, name = path.rpartition("/")
        size = self.folders.get(folder, {}).get(name)
        return {
            "path": path,
            "exists": size is not None,
            "kind": "file",
            "size": size,
            "error": "no such file",
        }

    def do_probe(self, request: dict[str, Any]) -> Any:
        ports = [{"port": port, "free": True, "listeners": []} for port in request["ports"]]
        paths = [
            {"path": path, "free_mib": 50000, "total_mib": 99999, "writable": True}
            for path in request["paths"]
        ]
        usual = {
            "ports": ports,
            "paths": paths,
            "shm": {"total_mib": 64000, "used_mib": 10},
            "limits": {"nofile": [1048576, 1048576], "memlock": [-1, -1], "nproc": [-1, -1]},
            "python": {
                "version": "3.12.3",
                "executable": request["python"],
                "modules": dict.fromkeys(request["modules"], "0.5.16"),
            },
        }
        return {**usual, **self.probe}

    def do_write_file(self, request: dict[str, Any]) -> Any:
        path, data = request["path"], base64.b64decode(request["data"])
        before = self.files[path]
        if hashlib.sha256(before).hexdigest() != request["expect"]:
            raise RequestError(f"changed: {path} is not what was shown")
        self._ids += 1
        backup = f"backup-{self._ids}"
        self.backups[backup] = (path, before)
        self.files[path] = data
        self.effects.append(("write", path))
        return {"path": path, "sha256": hashlib.sha256(data).hexdigest(), "backup": backup, "notes": []}

    def do_restore(self, request: dict[str, Any]) -> Any:
        path, data = self.backups[request["backup"]]
        if hashlib.sha256(self.files[path]).hexdigest() != request["expect"]:
            raise RequestError(f"changed: {path} is not as the patch left it")
        self.files[path] = data
        self.effects.append(("restore", path))
        return {"path": path, "sha256": hashlib.sha256(data).hexdigest(), "backup": None, "notes": []}

    def do_launch(self, request: dict[str, Any]) -> Any:
        self.effects.append(("launch", tuple(request["argv"])))
        assert self.on_launch is not None
        pid = self.on_launch(self, request)
        start = self.procs[pid].start if pid in self.procs else 1
        self.launched[request["token"]] = {"found": True, "pid": pid, "start": start, "exit": None}
        return {"pid": pid, "start": start}

    def do_launched(self, request: dict[str, Any]) -> Any:
        return self.launched.get(request["run"], {"found": False})

    def do_run(self, request: dict[str, Any]) -> Any:
        self.effects.append(("run", tuple(request["argv"])))
        act = self.managers.get(" ".join(request["argv"][:2]))
        code = act(self) if act else 127
        return {
            "exit": code,
            "timed_out": False,
            "output": "" if code == 0 else f"{request['argv'][0]}: failed",
        }

    def do_token(self, request: dict[str, Any]) -> Any:
        if self.token_error:
            raise RequestError(self.token_error)
        self.effects.append(("token", request["server"]))
        return {}

    def do_lock(self, request: dict[str, Any]) -> Any:
        mine = {"who": request["who"], "what": request["what"]}
        free = self.locked_by is None or self.locked_by == mine
        if free or request["take"]:
            self.locked_by = mine
            return {"held": True, "by": mine}
        return {"held": False, "by": self.locked_by}

    def do_unlock(self, request: dict[str, Any]) -> Any:
        self.locked_by = None
        return {"released": True}


def server(pid: int = 100, *, engine: str = "sglang", port: LampSays = "yes", **more: Any) -> Server:
    """A server in the picture. ``port``: what its port lamp says."""
    given: dict[str, Any] = {
        "key": f"{pid}:{pid * 10}",
        "engine": engine,
        "name": f"{engine}:30000",
        "pid": pid,
        "start": pid * 10,
        "started_at": 0.0,
        "port": 30000,
        "user": "root",
        "state": "ready",
        "phase": "serving",
        "verdict": Verdict(word="ready", since_s=None, limit_s=None),
        "truth": "serving",
        "log": LogSource(path="/var/log/s.log", kind="file", says="/var/log/s.log"),
        "lamps": (Lamp(name="port", says=port, value=port),),
        **more,
    }
    return Server(**given)


def sglang(host: FakeHost, *, main_obeys: float | None = 3.0, states: str = "SS", **more: Any) -> Server:
    """A living SGLang server with two ranks and a detokenizer, as the kernel has them."""
    argv = "python3 -m sglang.launch_server --model-path /models/target --tp 2 --port 30000"
    host.add(
        Proc(100, 1000, argv, family="s", obeys=main_obeys),
        Proc(101, 1010, "sglang::scheduler_TP0", 100, states[0], follows=100, family="s", gpu=0, mib=76000),
        Proc(102, 1020, "sglang::scheduler_TP1", 100, states[1], follows=100, family="s", gpu=1, mib=76000),
        Proc(103, 1030, "sglang::detokenizer", 100, follows=100, family="s"),
    )
    ranks = tuple(
        Rank(name=f"TP{n}", pid=101 + n, start=1010 + 10 * n, state=states[n], gpus=(n,)) for n in range(2)
    )
    host.files["/proc/100/cmdline"] = argv.replace(" ", "\0").encode() + b"\0"
    host.files["/proc/100/environ"] = b"NCCL_ALGO=Ring\0PATH=/usr/bin\0HOME=/root\0SSH_TTY=/dev/pts/3\0"
    host.files["/proc/100/cgroup"] = b"0::/user.slice/user-0.slice/session-4.scope\n"
    found = server(ranks=ranks, **more)
    host.servers.append(found)
    return found


def bystanders(host: FakeHost) -> list[int]:
    """Whom nobody may touch: a monitor with the device open, somebody else's job, our own agent."""
    host.add(
        Proc(5, 50, "python3 - specdash_loader", kind="holder", gpu=0, protected="our own agent"),
        Proc(700, 7000, "dcgm-exporter", kind="holder", gpu=0, protected="DCGM, a monitor"),
        Proc(701, 7010, "nvtop", kind="holder", gpu=1),
        Proc(702, 7020, "python3 notebook.py", uid=1000, user="bob"),
    )
    return [5, 700, 701, 702]


def diagnosis(key: str) -> Diagnosis:
    return Diagnosis(key=key, root=True, severity="error", line=1, rank=None, summary=key, evidence=key)
