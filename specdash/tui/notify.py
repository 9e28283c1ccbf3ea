"""Telling somebody who looks elsewhere: one escape code that makes a terminal show a notification.

There are two dialects and no way to ask which one is spoken. Most terminals know OSC 9 (iTerm2, WezTerm,
Ghostty, kitty, Windows Terminal), some only OSC 777 (rxvt, foot, VTE where it is patched in). A terminal that
knows both would tell twice, so exactly one is sent. Inside tmux the code is wrapped; tmux hands it on where
``allow-passthrough`` is on, and swallows it otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping

from specdash.sanitise import sanitise

_ESC, _BEL = "\x1b", "\x07"
LONGEST = 200


def notification(title: str, body: str, environ: Mapping[str, str]) -> str:
    """The code that shows ``title: body``; ``environ`` says which terminal this is."""
    title, body = (sanitise(text).replace(";", ",")[:LONGEST] for text in (title, body))
    if _speaks_777(environ):
        code = f"{_ESC}]777;notify;{title};{body}{_BEL}"
    else:
        code = f"{_ESC}]9;{title}: {body}{_BEL}"
    if environ.get("TMUX"):
        return f"{_ESC}Ptmux;{code.replace(_ESC, _ESC * 2)}{_ESC}\\"
    return code


def _speaks_777(environ: Mapping[str, str]) -> bool:
    term = environ.get("TERM", "")
    return term.startswith(("rxvt", "foot")) or "VTE_VERSION" in environ
