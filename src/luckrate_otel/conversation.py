"""What was said and done in earlier traces of the same conversation, so that later arguments can be traced to it.

The store belongs to one process: another replica has seen other traces, and a restart forgets what was said. That
something was said can be kept elsewhere (`begun`, `resume`), so that what comes from there is not taken for invented. A
conversation id means something only within its service.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256

from luckrate_otel.model import History, Step, Trajectory, Turn

CONVERSATION_BYTES = 64 * 1024 * 1024
CONVERSATION_AGE_NS = 24 * 3600 * 1_000_000_000

SERVICE_NAME = "service.name"  # resource attribute, semantic conventions 1.x, stable

_OBJECT_BYTES = 100  # an estimate for a text, a mapping entry or a record beside its contents
_DEPTH = 8

_Key = tuple[str, str]  # service, conversation id


@dataclass(frozen=True, slots=True)
class Begun:
    """That a conversation had a turn, and nothing of what was said. digest: 16 bytes, of its service and id.

    start_ns: of its first run that is known, epoch nanoseconds as in its spans.
    """

    digest: bytes
    start_ns: int


@dataclass(slots=True)
class _Past:
    """One earlier run. call_ids: of its calls. lost: steps of it were dropped to make room."""

    start_ns: int
    seen_ns: int
    turns: tuple[str, ...]
    steps: tuple[Step, ...]
    call_ids: frozenset[str] = frozenset()
    lost: bool = False


@dataclass(slots=True)
class _Conversation:
    """The earlier runs of one conversation by run id. lost: some were dropped, for age or room."""

    runs: dict[str, _Past] = field(default_factory=dict)
    texts: set[str] = field(default_factory=set)
    lost: bool = False


class Conversations:
    """Earlier turns by service and conversation, bounded in bytes (an estimate) and age.

    When room is short, the tool results that were remembered first go first, and only when there are none left the
    user's words: they are small, and most later arguments trace to them. That something of a conversation was dropped
    is itself remembered, in an eighth of the room.
    """

    def __init__(self, max_bytes: int = CONVERSATION_BYTES, max_age_ns: int = CONVERSATION_AGE_NS) -> None:
        self._max_bytes = max_bytes
        self._max_age_ns = max_age_ns
        self._conversations: dict[_Key, _Conversation] = {}
        self._with_steps: dict[tuple[_Key, str], _Past] = {}  # oldest first, as dicts keep their order
        self._by_age: dict[tuple[_Key, str], _Past] = {}
        self._emptied: dict[_Key, None] = {}  # conversations of which only `lost` is left
        self._before: dict[bytes, int] = {}  # digest → start of its first run, of an earlier process
        self.size = 0

    def __len__(self) -> int:
        return len(self._conversations)

    def remember(self, trajectory: Trajectory, now_ns: int) -> None:
        """Keep what the user said and the finished steps of a judged run; a later verdict replaces the earlier one.

        now_ns: when it was judged, by the clock that ages are measured with. Nothing is kept of a run without
        conversation id.
        """
        self._drop_old(now_ns)
        if not trajectory.conversation_id:
            return
        key = (service_of(trajectory), trajectory.conversation_id)
        conversation = self._conversations.get(key)
        if conversation is None:
            conversation = self._conversations[key] = _Conversation()
            self.size += _OBJECT_BYTES
        self._emptied.pop(key, None)
        self._drop(key, trajectory.run_id, lost=False)
        new = (turn.text for turn in trajectory.turns if turn.text not in conversation.texts)
        call_ids = frozenset(call_id for call_id in trajectory.call_ids if call_id)
        past = _Past(trajectory.start_ns, now_ns, tuple(dict.fromkeys(new)), tuple(_finished(trajectory)), call_ids)
        self._keep(key, trajectory.run_id, conversation, past)
        self._make_room()

    def begun(self, trajectory: Trajectory) -> Begun | None:
        """What a later process must know of the conversation of a run that is remembered; None if it has none."""
        if not trajectory.conversation_id:
            return None
        key = (service_of(trajectory), trajectory.conversation_id)
        digest = _digest(key)
        starts = [past.start_ns for past in self._conversations.get(key, _Conversation()).runs.values()]
        return Begun(digest, min([trajectory.start_ns, *starts, self._before.get(digest, trajectory.start_ns)]))

    def resume(self, begun: Iterable[Begun]) -> None:
        """Take up what an earlier process knew: its turns are missing to every later run of the same conversation."""
        self._before.update((one.digest, one.start_ns) for one in begun)

    def place(self, run: Trajectory) -> Trajectory:
        """The run within its conversation: with what its earlier runs hold, and without the calls they have shown.

        Later traces repeat the messages of earlier ones, and each call counts once; a call that has a span ran in this
        trace. The history that a run's own messages tell comes first: it is what its model really saw.
        """
        conversation_id = run.conversation_id
        if not conversation_id:
            return run
        service = service_of(run)
        conversation = self._conversations.get((service, conversation_id), _Conversation())
        earlier = [past for past in conversation.runs.values() if past.start_ns < run.start_ns]
        run = _without_repeats(run, frozenset().union(*(past.call_ids for past in earlier)))
        if run.history.turns or run.history.steps:
            return run
        return replace(run, history=self.history(service, conversation_id, run.start_ns))

    def history(self, service: str, conversation_id: str, before_ns: int) -> History:
        """What earlier runs of the conversation hold, oldest first.

        before_ns: start of the run that asks (epoch nanoseconds, as in its spans); only runs that started before count.
        missing: something of the conversation is known to have been dropped, or an earlier process has seen it. One
        that began in another replica looks like a new one.
        """
        conversation = self._conversations.get((service, conversation_id), _Conversation())
        earlier = [past for past in conversation.runs.values() if past.start_ns < before_ns]
        runs = sorted(
            (past for past in earlier if before_ns - past.start_ns <= self._max_age_ns), key=lambda past: past.start_ns
        )
        begun_ns = self._before.get(_digest((service, conversation_id)), before_ns)
        lost = begun_ns < before_ns or conversation.lost or len(runs) < len(earlier) or any(past.lost for past in runs)
        return History(
            turns=tuple(text for past in runs for text in past.turns),
            steps=tuple(step for past in runs for step in past.steps),
            missing=lost,
        )

    # ---- bounds ----------------------------------------------------------------------------------

    def _keep(self, key: _Key, run_id: str, conversation: _Conversation, past: _Past) -> None:
        conversation.runs[run_id] = past
        conversation.texts.update(past.turns)
        self._by_age[key, run_id] = past
        if past.steps:
            self._with_steps[key, run_id] = past
        self.size += _size_of_texts(past) + _size_of_steps(past)

    def _drop(self, key: _Key, run_id: str, *, lost: bool) -> None:
        """Take one run out. lost: it is missed from now on; otherwise it is replaced."""
        past = self._by_age.pop((key, run_id), None)
        if past is None:
            return
        self._with_steps.pop((key, run_id), None)
        conversation = self._conversations[key]
        conversation.texts.difference_update(past.turns)
        del conversation.runs[run_id]
        self.size -= _size_of_texts(past) + _size_of_steps(past)
        conversation.lost = conversation.lost or lost
        if lost and not conversation.runs:
            self._emptied[key] = None

    def _drop_old(self, now_ns: int) -> None:
        while self._by_age:
            (key, run_id), past = next(iter(self._by_age.items()))
            if now_ns - past.seen_ns <= self._max_age_ns:
                break
            self._drop(key, run_id, lost=True)
        self._bound_emptied()

    def _make_room(self) -> None:
        while self.size > self._max_bytes and self._with_steps:
            place = next(iter(self._with_steps))
            past = self._with_steps.pop(place)
            self.size -= _size_of_steps(past)
            past.steps, past.lost = (), True
        while self.size > self._max_bytes and self._by_age:
            self._drop(*next(iter(self._by_age)), lost=True)
        self._bound_emptied()

    def _bound_emptied(self) -> None:
        while len(self._emptied) * _OBJECT_BYTES * 8 > self._max_bytes:
            key = next(iter(self._emptied))
            del self._emptied[key], self._conversations[key]
            self.size -= _OBJECT_BYTES


def _digest(key: _Key) -> bytes:
    return sha256("\x1f".join(key).encode("utf-8", "surrogatepass")).digest()[:16]


def _without_repeats(run: Trajectory, known: Container[str]) -> Trajectory:
    ids = run.call_ids
    kept = [
        n
        for n, step in enumerate(run.steps)
        if step.span is not None or n >= len(ids) or ids[n] is None or ids[n] not in known
    ]
    if len(kept) == len(run.steps):
        return run
    place = {n: i for i, n in enumerate(kept)}
    return replace(
        run,
        steps=tuple(run.steps[n] for n in kept),
        call_ids=tuple(ids[n] for n in kept),
        gaps={(place[n], name): gap for (n, name), gap in run.gaps.items() if n in place},
        turns=tuple(Turn(turn.text, sum(1 for n in kept if n < turn.before_step)) for turn in run.turns),
    )


def service_of(trajectory: Trajectory) -> str:
    name = trajectory.attributes.get(SERVICE_NAME)
    return name if isinstance(name, str) else ""


def _finished(trajectory: Trajectory) -> Iterator[Step]:
    """Steps that gave something back; a call that never returned grounds nothing."""
    return (step for step in trajectory.steps if step.ok is not None or step.result is not None)


def _size_of_texts(past: _Past) -> int:
    return _OBJECT_BYTES + sum(_OBJECT_BYTES + len(text) for text in (*past.turns, *past.call_ids))


def _size_of_steps(past: _Past) -> int:
    return sum(3 * _OBJECT_BYTES + len(step.result or "") + _size_of_value(step.args) for step in past.steps)


def _size_of_value(value: object, depth: int = 0) -> int:
    if isinstance(value, str | bytes):
        return _OBJECT_BYTES + len(value)
    if depth < _DEPTH and isinstance(value, tuple | list):
        return _OBJECT_BYTES + sum(_size_of_value(v, depth + 1) for v in value)
    if depth < _DEPTH and isinstance(value, Mapping):
        return _OBJECT_BYTES + sum(len(str(k)) + _OBJECT_BYTES + _size_of_value(v, depth + 1) for k, v in value.items())
    return _OBJECT_BYTES // 2
