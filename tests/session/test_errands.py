"""A request is answered once, however often the link is lost in between."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from specdash.errors import RequestError
from specdash.monitor.frames import Reply
from specdash.session.errands import Errands


class Agent:
    """Hears every request."""

    def __init__(self) -> None:
        self.heard: list[Mapping[str, Any]] = []

    def send(self, request: Mapping[str, Any]) -> bool:
        self.heard.append(request)
        return True


async def test_an_answer_lost_with_the_link_is_asked_for_again_under_the_same_token() -> None:
    agent = Agent()
    sent, errands = agent.heard, Errands(agent.send)
    asking = asyncio.ensure_future(errands.ask({"r": "signal"}))
    await asyncio.sleep(0)
    errands.again()
    assert len(sent) == 2
    assert sent[0] == sent[1]
    errands.take(Reply(at=0.0, id="somebody else's", ok=True))
    errands.take(Reply(at=0.0, id=sent[0]["id"], ok=True, value=[1]))
    assert await asking == [1]
    assert errands.waiting == ()


async def test_a_refusal_is_raised_in_the_hosts_own_words() -> None:
    agent = Agent()
    errands = Errands(agent.send)
    asking = asyncio.ensure_future(errands.ask({"r": "signal"}, token="t1"))
    await asyncio.sleep(0)
    errands.take(Reply(at=0.0, id="t1", ok=False, error="watch-only"))
    with pytest.raises(RequestError, match="watch-only"):
        await asking
