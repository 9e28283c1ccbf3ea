"""The serving half of the main process: its port, its requests, its health, its end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import uuid
from collections.abc import Iterator

from specdash.sim.engine import answers, texts
from specdash.sim.engine.acts import Setting
from specdash.sim.engine.batch import Batch, Request
from specdash.sim.engine.play import Player
from specdash.sim.engine.sizes import pool
from specdash.sim.engine.traffic import Traffic
from specdash.sim.engine.web import Exchange, serve
from specdash.sim.scenarios import Course

HEALTH_S, HEALTH_LIMIT_S = 1.0, 20.0
"""The health check sleeps a second, then asks for a token, and gives up after twenty."""
CALM_S, STREAM_S = 0.25, 0.008
"""Real seconds between two looks at the batch: without a client that listens, and the least with one."""


class Service:
    """Answers HTTP, and makes tokens on the host's clock."""

    def __init__(self, player: Player, setting: Setting, course: Course, speed: float) -> None:
        self.speed = speed
        """How fast the host's clock is to turn once this serves."""
        self.player = player
        self.clock = player.clock
        self.log = player.log
        self.setting = setting
        self.course = course
        self.batch = Batch(setting.steps, pool(setting).tokens, self.clock.now())
        self.traffic = Traffic(self.clock.now()) if course.traffic else None
        self.warm = False
        self.draining = False
        self.blocked = False
        """Crash diagnostics run: connections are accepted and nothing is answered."""
        self._asked = asyncio.Event()
        """A client has asked for something: it is worth a look at once."""
        self._news = asyncio.Event()
        self._listeners = 0
        self._busy = False

    # -- life --------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Open the port, warm up, serve until the end. Returns when the process is about to end."""
        loop = asyncio.get_running_loop()
        for text in (f"Started server process [{os.getpid()}]", "Waiting for application startup."):
            self.log.now("INFO:     " + text)
        self.log.now("INFO:     Application startup complete.")
        try:
            server = await serve("127.0.0.1", self.setting.port, self.handle, self.log.access)
        except OSError:
            await self._port_taken()
            return
        loop.add_signal_handler(signal.SIGTERM, lambda: loop.create_task(self.drain()))
        loop.add_signal_handler(signal.SIGQUIT, self.player.end)
        self.log.now(
            f"INFO:     Uvicorn running on http://127.0.0.1:{self.setting.port} (Press CTRL+C to quit)"
        )
        async with server:
            tasks = [loop.create_task(self._warm_up()), loop.create_task(self._make())]
            gone = await self.player.dead
            for task in tasks:
                task.cancel()
            await self._crash(gone.gpu or 0, gone.pid)

    async def _port_taken(self) -> None:
        address = ("127.0.0.1", self.setting.port)
        text = f"[Errno 98] error while attempting to bind on address {address}: address already in use"
        self.log.now("ERROR:    " + text)
        for text in ("Waiting for application shutdown.", "Application shutdown complete."):
            self.log.now("INFO:     " + text)
        await self.sleep(1.0)
        self.log.now(texts.READY)  # the warm-up was answered by whoever owns the port
        self.player.crew.kill()
        os._exit(3)

    async def _warm_up(self) -> None:
        await self.sleep(1.0)
        here = "127.0.0.1:40294"
        self.log.access(f'{here} - "GET /model_info HTTP/1.1" 200 OK')
        await self.sleep(self.course.warmup_s)
        request = Request(10, 8, self.clock.now())
        with self._asking(request):
            await self._done(request)
        self.log.access(f'{here} - "POST /generate HTTP/1.1" 200 OK')
        self.log.now(texts.READY)
        self.clock.turn(self.speed)
        self.warm = True

    async def _make(self) -> None:
        """Let the batch go on, for as long as the ranks do."""
        while True:
            await self._pause()
            now = self.clock.now()
            if self.player.stopped:
                self.batch.skip(now)
                continue
            if self.traffic and self.warm and not self.draining:
                for request in self.traffic.due(now):
                    if not self._listeners:  # who measures is left alone, as colleagues do where it is said
                        self.batch.add(request)
            for record in self.batch.advance(now):
                if record.client:
                    self.log.access(f"{record.client} - {record.text}", record.at)
                else:
                    self.log.say(record.at, record.text, 0)
            self._look_busy()
            self._news.set()
            self._news.clear()

    async def _pause(self) -> None:
        """Until the next token where a client listens: what it measures is what the batch reckons with."""
        pause = CALM_S
        if self._listeners:
            due = (self.batch.next_at() - self.clock.now()) / self.clock.speed
            pause = min(CALM_S, max(STREAM_S, due))
        self._asked.clear()
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._asked.wait(), pause)

    @contextlib.contextmanager
    def _asking(self, request: Request) -> Iterator[None]:
        """A client waits for the answer to this."""
        self.batch.add(request)
        self._listeners += 1
        self._asked.set()
        try:
            yield
        finally:
            self._listeners -= 1
            request.cancelled = request.made < request.wanted

    def _look_busy(self) -> None:
        busy = bool(self.batch.running)
        if busy != self._busy:
            self._busy = busy
            mood = "decoding" if busy else "ready"
            self.player.picture.show((mood,) * self.setting.tp, self.player.picture.mib)

    async def drain(self) -> None:
        """SIGTERM: finish what runs, then end by SIGKILL as the engine does."""
        if self.draining:
            return
        self.draining = True
        self.log.now("SIGTERM received. signum=None frame=None. Draining requests and shutting down...")
        await self.sleep(3.1)
        while True:
            left = len(self.batch.running) + len(self.batch.waiting)
            text = f"Gracefully exiting... Remaining number of requests {left}. Remaining requests"
            self.log.now(f"{text} remaining_rids={[uuid.uuid4().hex for _ in range(left)]}.")
            if not left:
                break
            await self.sleep(5.0)
        self.blocked = True
        await self.sleep(2.1)
        self.log.now(texts.kill_tree(os.getpid()))
        self.player.end()

    async def _crash(self, rank: int, pid: int) -> None:
        """A scheduler is gone: the diagnostics that the engine makes before it ends itself."""
        self.log.now(
            f"Subprocess scheduler_{rank} (pid={pid}) crashed with exit code -9."
            " Triggering SIGQUIT for cleanup..."
        )
        self.log.now("SIGQUIT received. signum=None, frame=None. It usually means one child failed.")
        self.log.now("Sleeping 5 seconds before crash diagnostics to let GPU activity settle.")
        self.blocked = True
        await self.sleep(5.0)
        if self.setting.tp > 1:
            self.log.now("Waiting 60.0 seconds for CUDA coredumps before exiting.")
            await self.sleep(60.0)
        else:
            self.log.now("No live scheduler processes found; skipping py-spy and CUDA coredump.")
        self.log.now(texts.kill_tree(os.getpid()))
        self.player.end()

    async def sleep(self, seconds: float) -> None:
        """Seconds of the host's clock."""
        await asyncio.sleep(seconds / self.clock.speed)

    # -- HTTP --------------------------------------------------------------------------------------

    async def handle(self, exchange: Exchange) -> None:
        """One request, answered as this version answers it."""
        if self.blocked:
            await asyncio.sleep(3600)
        now = self.clock.now()
        setting, batch = self.setting, self.batch
        snapshot = self.player.stopped_at if self.player.stopped else now
        known = {
            "/v1/models": lambda: answers.models(setting, now),
            "/model_info": lambda: answers.model_info(setting),
            "/get_model_info": lambda: answers.model_info(setting),
            "/v1/loads": lambda: answers.loads(setting, batch, now, snapshot),
        }
        path = exchange.path
        if path in ("/v1/completions", "/v1/chat/completions", "/generate"):
            await self._complete(exchange)
        elif path in ("/health", "/health_generate"):
            await self._health(exchange)
        elif path in known:
            await exchange.send_json(known[path]())
        elif path in ("/server_info", "/get_server_info"):
            await self.player.moving.wait()  # it asks the scheduler, without a limit
            await exchange.send_json(answers.server_info(setting, batch))
        elif path == "/ping":
            await exchange.send(200)
        elif path == "/metrics":
            await exchange.send(200, answers.metrics(setting, batch).encode(), "text/plain; version=0.0.4")
        else:
            await exchange.send_json({"detail": "Not Found"}, 404)

    async def _health(self, exchange: Exchange) -> None:
        if self.draining:
            self.log.now("Health check request received during shutdown. Returning 503.")
        if not self.warm or self.draining:
            await exchange.send(503)
            return
        began = self.clock.now()
        await self.sleep(HEALTH_S)
        if not self.batch.running and not self.player.stopped:
            self.log.now(texts.HEALTH_PREFILL, 0)
        try:
            await asyncio.wait_for(self.player.moving.wait(), (HEALTH_LIMIT_S - HEALTH_S) / self.clock.speed)
        except asyncio.TimeoutError:
            self.log.now(texts.health_failed(began, self.player.stopped_at))
            await exchange.send(503)
        else:
            await exchange.send(200)

    async def _complete(self, exchange: Exchange) -> None:
        if exchange.method != "POST":
            await exchange.send_json({"detail": "Method Not Allowed"}, 405)
            return
        if self.draining:
            await exchange.send_json({"error": "server is shutting down"}, 503)
            return
        try:
            wish = answers.Wish(exchange.path, exchange.body)
        except (ValueError, TypeError, AttributeError) as error:
            await exchange.send_json({"object": "error", "message": str(error), "code": 400}, 400)
            return
        request = Request(wish.prompt, wish.tokens, self.clock.now())
        reply = answers.Reply(wish, self.setting.served, uuid.uuid4().hex, self.clock.now())
        with self._asking(request):
            if wish.stream:
                await self._stream(exchange, request, reply)
            else:
                await self._done(request)
                await exchange.send_json(reply.whole(request.made))

    async def _stream(self, exchange: Exchange, request: Request, reply: answers.Reply) -> None:
        while not request.made:
            await self._news.wait()
        await exchange.begin_stream()
        opening = reply.opening()
        if opening:
            await exchange.event(opening)
        sent = 0
        while exchange.open:
            made = request.made
            if made > sent:
                for chunk in reply.chunk(sent, made - sent, last=made >= request.wanted):
                    await exchange.event(chunk)
                sent = made
            if sent >= request.wanted:
                if reply.wish.usage:
                    await exchange.event(reply.closing(sent))
                await exchange.event("[DONE]")
                await exchange.end_stream()
                return
            await self._news.wait()

    async def _done(self, request: Request) -> None:
        while request.ended_at is None:
            await self._news.wait()
