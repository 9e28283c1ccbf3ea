"""A fault of ours ends the watch of one host: what stays on the screen does not look as if it lived."""

from __future__ import annotations

import pytest

from specdash.monitor.frames import Link
from specdash.remote.target import parse_target
from specdash.session.live import Session, SessionOptions
from specdash.tui.paint import text_of
from specdash.tui.widgets.linkpanels import over_row
from tests.monitor.frames_of import hello


async def test_what_was_seen_is_old_and_says_that_nobody_looks_any_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = Session(parse_target("box"), SessionOptions())

    async def fails() -> None:
        for frame in (Link(at=100.0, state="live"), hello(100.0)):
            session._take(frame, b"")
        raise ZeroDivisionError

    monkeypatch.setattr(session._link, "run", fails)
    with pytest.raises(ZeroDivisionError):
        await session.run()
    state = session.state
    assert state.old
    assert state.link.reason == "specdash's own error (ZeroDivisionError): this host is no longer watched"
    banner = text_of(over_row(state, 80))
    assert banner.startswith(" ▌ specdash failed here, ")
    assert banner.endswith("on the host's clock   q quits")
