"""What the user said, what the system said, and what the agent answered in the end."""

from __future__ import annotations

from collections.abc import Iterable

from luckrate_otel.content.messages import text_in
from luckrate_otel.facts import Call, Facts, Message, Response
from luckrate_otel.join.history import split_history
from luckrate_otel.join.kinds import Kinds
from luckrate_otel.join.model_calls import ModelCall
from luckrate_otel.join.steps import Placed
from luckrate_otel.join.tree import Tree
from luckrate_otel.model import History, Step, Turn
from luckrate_otel.record import record
from luckrate_otel.telemetry import Head


@record(frozen=True, slots=True)
class Words:
    turns: tuple[Turn, ...]
    system: tuple[str, ...]
    final_output: str | None
    history: History


def words(
    kinds: Kinds,
    outer: list[ModelCall],
    last: ModelCall | None,
    placed: tuple[Placed, ...],
    tree: Tree,
    root: Head | None,
) -> Words:
    """Only the outermost agents' words: what a sub-agent is asked was written by a model.

    outer: the outermost agents' model calls; last: the one of them that ended last.
    """
    containers = _containers(kinds.containers, tree)
    first = next((m for m in outer if m.fact.inputs), None)
    past, present = split_history(first.fact.inputs) if first else ((), ())
    asked = _asked(containers) or tuple(t for m in present if _is_users(m) and (t := text_in(m)))
    return Words(
        turns=(*[Turn(text) for text in asked], *_later_turns(outer, first, asked, placed)),
        system=_system([*[m.fact for m in outer], *containers]),
        final_output=_final(containers, last, placed, root),
        history=_history(past, asked) if past else _NO_HISTORY,
    )


_NO_HISTORY = History()


def _system(facts: Iterable[Facts]) -> tuple[str, ...]:
    """Each system text once; conventions put it apart from the messages or first among them."""
    found: list[str] = []
    for fact in facts:
        found += fact.system
        for message in fact.inputs:
            if message.role == "system" and (text := text_in(message)):
                found.append(text)
    return tuple(dict.fromkeys(found))


def _is_users(message: Message) -> bool:
    return message.role in ("user", "unknown")


def _containers(facts: Iterable[Facts], tree: Tree) -> list[Facts]:
    """Agents and workflows that are not below a tool call, outermost first."""
    found = [f for f in facts if not (f.log or f.tool) and not tree.in_a_call(f.head.span_id)]
    if len(found) < 2:
        return found
    return sorted(found, key=lambda f: (tree.depth(f.head.span_id), f.head.start_ns, f.head.span_id))


# ---- the user ----------------------------------------------------------------------------------


def _asked(containers: Iterable[Facts]) -> tuple[str, ...]:
    for fact in containers:
        if fact.task_input:
            return (fact.task_input,)
        _, present = split_history(fact.inputs)
        found = tuple(t for m in present if m.role == "user" and (t := text_in(m)))
        if found:
            return found
    return ()


def _later_turns(
    outer: list[ModelCall], first: ModelCall | None, asked: tuple[str, ...], placed: tuple[Placed, ...]
) -> Iterable[Turn]:
    """User texts that join the same conversation later: a person answering in the middle of the run.

    Only where the later input still holds what the first one held: another prompt of the same agent (a summary, a
    guard) is written by the program and may quote tool results.
    """
    if first is None:
        return
    known = {text_in(m) for m in first.fact.inputs if m.role == "user"}
    begun = set(known)
    known |= set(asked)
    if not begun:
        return
    for model in outer:
        if model is first or model.scope != first.scope:
            continue
        said = [t for m in model.fact.inputs if m.role == "user" and (t := text_in(m))]
        if not begun.issubset(said):
            continue
        for text in said:
            if text not in known:
                known.add(text)
                yield Turn(text, sum(1 for p in placed if p.issued_ns < model.start_ns))


def _history(past: tuple[Message, ...], asked: tuple[str, ...]) -> History:
    """Earlier turns of the conversation, as the run's own messages repeat them."""
    turns = tuple(t for m in past if m.role == "user" and (t := text_in(m)) and t not in asked)
    answers = {p.call_id: p for m in past for p in m.parts if isinstance(p, Response)}
    calls = [(p, m.name) for m in past for p in m.parts if isinstance(p, Call)]
    steps = []
    for call, name in calls:
        answer = answers.get(call.call_id)
        ok = None if answer is None else answer.ok is not False
        steps.append(
            Step(
                tool=call.tool,
                args=call.args,
                ok=ok,
                result=answer.result if answer else None,
                agent=name or "main",
                error=None if ok is not False or answer is None else answer.result or "error",
            )
        )
    return History(turns, tuple(steps))


# ---- the answer --------------------------------------------------------------------------------


def _final(
    containers: list[Facts], closing: ModelCall | None, placed: tuple[Placed, ...], root: Head | None
) -> str | None:
    if root is not None:
        own = next((f for f in containers if f.head.span_id == root.span_id), None)
        if own is not None and (text := _answer(own)):
            return text
    # An inner span's answer is the run's only if nothing happened after it.
    issued_ns = placed[-1].issued_ns if placed else 0  # steps are in the order of their issue
    last_ns = max(closing.fact.head.end_ns, issued_ns) if closing else issued_ns
    for fact in sorted(containers, key=lambda f: -f.head.end_ns):  # of one end, the outermost first as they come
        if fact.head.end_ns >= last_ns and (text := _answer(fact)):
            return text
    if closing is None or issued_ns > closing.end_ns:
        return None
    return _spoken(closing.fact.outputs)


def last_of(models: Iterable[ModelCall]) -> ModelCall | None:
    """The model call that ended last."""
    last: ModelCall | None = None
    end_ns = start_ns = 0
    for model in models:
        head = model.fact.head
        if last is None or head.end_ns > end_ns or (head.end_ns == end_ns and head.start_ns > start_ns):
            last, end_ns, start_ns = model, head.end_ns, head.start_ns
    return last


def _answer(fact: Facts) -> str | None:
    if fact.final_output:
        return fact.final_output
    if fact.final_output is None:
        return _spoken(fact.outputs, whole=True)
    return None


def _spoken(outputs: tuple[Message, ...], *, whole: bool = False) -> str | None:
    """The text of the last assistant message. whole: it may list the run's calls beside its text (Vercel AI SDK)."""
    for message in reversed(outputs):
        if message.role == "assistant":
            calls = any(isinstance(p, Call) for p in message.parts)
            answered = any(isinstance(p, Response) for p in message.parts)
            if calls and not (whole and answered):
                return None
            return text_in(message) or None
    return None
