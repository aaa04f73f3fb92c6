"""A tool call as the model asked for it, and by what two of them are known to be the same."""

from __future__ import annotations

from luckrate_otel.content.structured import dumps
from luckrate_otel.facts import Call, Facts, Response
from luckrate_otel.join.model_calls import Scope
from luckrate_otel.join.names import plain_name
from luckrate_otel.record import record

Key = tuple[str, str]
TurnId = tuple[str, int]  # the span that shows it, and its number


@record(frozen=True, slots=True)
class Issue:
    """A tool call that a model asked for.

    source: the span that shows it; by a model, or (container) only listed by the agent or crew as a whole.
    retold: only a later input tells of it. turn: 0 for what the source itself asked for; other numbers where the span
    of the model call never came: below 0 before the source's own, above 0 after it. position: its place within the
    turn. answer: what later input shows, heard: the model call whose input that is. last: no later call of the same
    conversation was seen. old: shown by the first input of a conversation, so that it may have been made before this
    run; a span with its id tells that it was not.
    """

    call: Call
    source: Facts
    scope: Scope
    position: int
    start_ns: int
    end_ns: int
    container: bool = False
    named: str | None = None
    answer: Response | None = None
    last: bool = True
    shown: bool = True
    turn: int = 0
    old: bool = False
    retold: bool = False
    heard: Facts | None = None

    @property
    def turn_id(self) -> TurnId:
        return self.source.head.span_id, self.turn


def key_of(call: Call) -> Key:
    return plain_name(call.tool), call.call_id or dumps(call.args)
