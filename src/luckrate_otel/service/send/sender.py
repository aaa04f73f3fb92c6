"""Takes batches from a destination's queue and sees them delivered: when to send, how many at once, when to try again.

Each destination has a sender of its own, so that a dead one never holds up another.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from opentelemetry import context as otel_context

from luckrate_otel.errors import Busy
from luckrate_otel.plural import plural
from luckrate_otel.service.repeats import Repeats
from luckrate_otel.service.send.batch import Batch, Item, Place
from luckrate_otel.service.send.queue import JOIN_BYTES, RETRY_AFTER, Account, Queue, Split
from luckrate_otel.service.send.replies import Kind, Reply, Transport
from luckrate_otel.service.signals import Signal

_log = logging.getLogger(__name__)

# Sends in flight to one destination: enough to cover a next hop's latency (4 MiB per round trip), few enough that a
# failing one is not stormed and that spans leave nearly in order.
CONCURRENCY = 4

# After so many failures in a row that may be its own fault, a body is put behind all others: one that times out every
# time would otherwise stand first for ever, until the queue is full and every sender is refused.
PATIENCE = 3

# A next hop that says "in an hour" is asked again sooner: it may have restarted meanwhile.
MAX_RETRY_AFTER = 300.0

# The key by which OpenTelemetry's instrumentations know that a request is an exporter's own; without it, running under
# auto-instrumentation would trace each export, and export that.
_SUPPRESSED = "suppress_instrumentation"


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential with full jitter, in seconds. The cap keeps recovery of a restarted next hop within seconds."""

    first: float = 0.2
    longest: float = 5.0

    def delay(self, failures: int, chance: float) -> float:
        """failures: in a row, at least 1. chance: in [0, 1)."""
        return float(chance * min(self.longest, self.first * 2.0 ** min(failures - 1, 30)))


class Sender:
    """One destination. put() is synchronous: when it returns, the queue has the body.

    clock: nanoseconds, monotonic. chance: random in [0, 1). split: see queue.Split.
    identify: names what is in a dropped body for the log, ids only.
    """

    def __init__(
        self,
        name: str,
        queue: Queue,
        transport: Transport,
        *,
        signals: Collection[Signal] = tuple(Signal),
        split: Split | None = None,
        identify: Callable[[Signal, bytes], str] | None = None,
        concurrency: int = CONCURRENCY,
        join_bytes: int = JOIN_BYTES,
        backoff: Backoff | None = None,
        clock: Callable[[], int] = time.monotonic_ns,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.name = name
        self.signals = frozenset(signals)
        self._queue = queue
        self._transport = transport
        self._split = split
        self._identify = identify
        self._concurrency = concurrency
        self._join_bytes = self._limit = join_bytes
        self._backoff = backoff or Backoff()
        self._clock = clock
        self._chance = chance
        self._repeats = Repeats(clock)
        self._told: set[Signal] = set()
        self._flying: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._failures = 0
        self._stuck: tuple[Place | None, int] = (None, 0)
        self._not_before_ns = 0
        self._draining = False
        self._stopped = False
        self._settled = asyncio.Event()
        self.last_code = ""

    @property
    def failures(self) -> int:
        """Failed attempts since the last that worked; 0 when the next hop is well."""
        return self._failures

    @property
    def queue_bytes(self) -> int:
        return self._queue.size_bytes

    def account(self, signal: Signal) -> Account:
        return self._queue.account(signal)

    def check(self, size: int, ahead: int = 0) -> None:
        """Raise what put() would for a body of this size: to ask all destinations before giving it to any.

        ahead: see Queue.check.
        """
        if self._draining:
            raise Busy("shutting down", RETRY_AFTER)
        self._queue.check(size, ahead)

    def put(self, signal: Signal, body: bytes, count: int, *, owed: bool = False, number: int | None = None) -> None:
        """Queue one body of a signal in `signals`. Busy or TooLarge: nothing was taken. owed, number: see Queue.put."""
        if not owed:
            self.check(len(body))
        self._queue.put(signal, body, count, self._clock(), owed=owed, number=number)
        if self._timer is None or self._queue.full(signal, self._limit):
            self._poke()

    def restore(self, items: Iterable[Item]) -> None:
        """Queue what a store kept, oldest first; call start() once all is restored."""
        self._queue.restore(items)

    def start(self) -> None:
        """Begin sending; needed only when the queue was restored, otherwise the first put does it."""
        self._poke()

    async def drain(self, deadline: float) -> tuple[Item, ...]:
        """Send all that is left, for at most `deadline` seconds; return what was not delivered, oldest first.

        Nothing is taken or sent afterwards. An item that was cut off in flight is returned, though it may have arrived.
        """
        self._draining = True
        self._poke()
        try:
            async with asyncio.timeout(deadline):
                while self._queue:
                    self._settled.clear()
                    await self._settled.wait()
        except TimeoutError:
            pass
        finally:
            await self._stop()
        return self._queue.remaining()

    async def _stop(self) -> None:
        self._stopped = True  # landing sends start no others
        self._disarm()
        flying = list(self._flying)
        for task in flying:
            task.cancel()
        await asyncio.gather(*flying, return_exceptions=True)
        await self._transport.close()

    def _poke(self) -> None:
        """Start what may be sent now, and set the timer for what may be sent later."""
        now_ns = self._clock()
        while self._free(now_ns):
            batch = self._queue.take(now_ns, limit=self._limit, flush=self._draining)
            if batch is None:
                break
            task = asyncio.get_running_loop().create_task(self._deliver(batch))
            self._flying.add(task)
            task.add_done_callback(self._landed)
        self._arm(now_ns)

    def _free(self, now_ns: int) -> bool:
        """One probe at a time while the next hop fails, or every batch would find out for itself."""
        return now_ns >= self._not_before_ns and len(self._flying) < (1 if self._failures else self._concurrency)

    def _arm(self, now_ns: int) -> None:
        self._disarm()
        due_ns = self._queue.due_ns()
        busy = len(self._flying) >= (1 if self._failures else self._concurrency)
        if due_ns is None or busy:
            return  # the next put, or a landing send, comes here again
        if self._draining:
            due_ns = now_ns  # nothing lingers at shutdown
        wait = max(due_ns, self._not_before_ns, now_ns) - now_ns
        self._timer = asyncio.get_running_loop().call_later(min(wait / 1e9, 3600.0), self._ring)

    def _ring(self) -> None:
        self._timer = None
        self._poke()

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _landed(self, task: asyncio.Task[None]) -> None:
        self._flying.discard(task)
        self._settled.set()
        if not self._stopped:
            self._poke()

    async def _deliver(self, batch: Batch) -> None:
        otel_context.attach(otel_context.set_value(_SUPPRESSED, True))
        try:
            reply = await self._transport.send(batch.signal, batch.body)
        except asyncio.CancelledError:
            self._queue.put_back(batch)
            raise
        except Exception as error:  # noqa: BLE001 - a fault in one transport must not lose the batch
            reply = Reply(Kind.RETRY, type(error).__name__)
        self._settle(batch, reply)

    def _settle(self, batch: Batch, reply: Reply) -> None:
        self.last_code = reply.code
        if reply.kind is Kind.RETRY:
            self._keep(batch, reply)
            self._wait(reply)
            return
        self._well()
        if reply.kind is Kind.SENT:
            self._queue.sent(batch, reply.rejected)
            self._limit = min(self._join_bytes, self._limit * 2)
            if reply.rejected:
                self._warn(reply, f"next hop rejected {reply.rejected} of {batch.count}")
        elif reply.kind in (Kind.TOO_LARGE, Kind.INVALID) and self._divide(batch):
            pass
        else:
            self._drop(batch, reply)

    def _keep(self, batch: Batch, reply: Reply) -> None:
        """Put a failed batch back. The limit shrinks with each failure, so that the one at fault is soon alone."""
        place = batch.items[0].place
        self._stuck = (place, self._stuck[1] + 1 if self._stuck[0] == place else 1)
        behind = reply.blames_batch and len(batch.items) == 1 and self._stuck[1] >= PATIENCE
        # One of the usual size that takes too long is not helped by that; a giant may never get through as one.
        if behind and batch.items[0].cost > JOIN_BYTES and self._divide(batch):
            return
        self._queue.put_back(batch, behind=behind)

    def _divide(self, batch: Batch) -> bool:
        try:
            return self._queue.split(batch, self._split)
        except Exception as error:  # noqa: BLE001 - a body that cannot even be split is dropped like any other poison
            _log.warning("destination %s: splitting failed: %s", self.name, type(error).__name__)
            return False

    def _wait(self, reply: Reply) -> None:
        now_ns = self._clock()
        if now_ns >= self._not_before_ns:  # sends that were already out when the first failed count as the same failure
            self._failures += 1
            self._limit = max(1, self._limit // 2)  # a next hop that times out on large batches may take small ones
        delay = max(self._backoff.delay(self._failures, self._chance()), min(reply.retry_after or 0.0, MAX_RETRY_AFTER))
        self._not_before_ns = max(self._not_before_ns, now_ns + int(delay * 1e9))
        self._warn(reply, f"export failed, {plural(self._queue.size_bytes, 'byte waits', 'bytes wait')}, trying again")

    def _well(self) -> None:
        if self._failures:
            _log.info("destination %s: reachable again", self.name)
        self._failures = 0

    def _drop(self, batch: Batch, reply: Reply) -> None:
        self._queue.drop(batch, reply.kind.value)
        if reply.kind is Kind.UNSUPPORTED:
            if batch.signal not in self._told:
                self._told.add(batch.signal)
                _log.warning(
                    "destination %s: does not take %s (%s); counted from now on", self.name, batch.signal, reply.code
                )
            return
        self._warn(reply, f"dropped {batch.count} of {batch.signal} as {reply.kind}{self._names(batch)}")

    def _names(self, batch: Batch) -> str:
        if self._identify is None:
            return ""
        try:
            return ": " + self._identify(batch.signal, batch.body)
        except Exception:  # noqa: BLE001 - poison may well be unreadable
            return ": unreadable"

    def _warn(self, reply: Reply, message: str) -> None:
        quiet = self._repeats.due((reply.kind, reply.code))
        if quiet is not None:
            _log.warning("destination %s: %s (%s)%s", self.name, message, reply.code, quiet)
