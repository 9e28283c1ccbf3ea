"""Questions of a connection (unknown host key, passphrase, password), asked in the dashboard.

Fits ``specdash.remote.asking.Prompter``; the connection may ask from any task of the event loop.
"""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

from textual.app import App

from specdash.tui.screens.dialog import Dialog
from specdash.tui.screens.dialogs import host_key_dialog, secret_dialog

_T = TypeVar("_T", bound="bool | str | None")


class ScreenPrompter:
    """Asks by a dialog; several connections are asked one after another."""

    def __init__(self) -> None:
        self._app: App[Any] | None = None
        self._turn = asyncio.Lock()

    def bind(self, app: App[Any]) -> None:
        """The app that shows the dialogs."""
        self._app = app

    async def host_key(self, question: Any) -> bool:
        """Trust this key from now on? Refused where nobody can be asked."""
        return bool(await self._ask(host_key_dialog(question), question))

    async def secret(self, question: Any) -> str | None:
        """The secret, or None to give up."""
        answer = await self._ask(secret_dialog(question), question)
        return answer or None

    async def _ask(self, dialog: Dialog[_T], question: object) -> _T | None:
        app = self._app
        if app is None or not app.is_running:
            return None
        async with self._turn:
            answer: asyncio.Future[_T | None] = asyncio.get_running_loop().create_future()

            def answered(value: _T | None) -> None:
                if not answer.done():
                    answer.set_result(value)

            app.call_later(app.push_screen, dialog, answered)
            try:
                return await answer
            except asyncio.CancelledError:
                app.call_later(dialog.withdraw)  # after it has come
                raise
