"""A tiny agent for tests: greets, beats, answers pings, and misbehaves on request."""

from __future__ import annotations

import functools

from specdash.remote.payload import pack

SOURCE = """
import json, os, select, sys, time


def main(frames_in, frames_out, options):
    def say(t, **fields):
        fields.update(t=t, at=time.time())
        os.write(frames_out, json.dumps(fields).encode() + b"\\n")

    if options.get("fail"):
        raise RuntimeError(options["fail"])
    say("hello", proto=1, specdash="0", host="box", boot="b", pid=os.getpid(), uid=os.getuid(), user="u",
        python="%d.%d" % sys.version_info[:2])
    pending, number = b"", 0
    while True:
        if select.select([frames_in], [], [], 0.2)[0]:
            data = os.read(frames_in, 65536)
            if not data:
                return
            *lines, pending = (pending + data).split(b"\\n")
            for line in lines:
                request = json.loads(line.decode())
                if request["r"] == "ping":
                    say("pong", n=request["n"])
                elif request["r"] == "raw":
                    os.write(frames_out, request["text"].encode("latin-1"))
                elif request["r"] == "print":
                    print("a stray print")
                    os.system("echo a stray child; cat")
                    say("note", level="info", text="still here")
                elif request["r"] == "die":
                    sys.exit("the agent was told to die")
                elif request["r"] == "flood":
                    for n in range(request["lines"]):
                        say("note", level="info", text="%06d " % n + "x" * 100)
                elif request["r"] == "uid":
                    say("note", level="info", text="uid %d" % os.getuid())
        number += 1
        say("beat", n=number)
"""


@functools.cache
def block() -> bytes:
    """The stand-in as what is sent to a host."""
    return pack({"specdash": "", "specdash.agent": "", "specdash.agent.main": SOURCE})
