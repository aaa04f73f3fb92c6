"""Model calls → the tool calls that they asked for, each once, with its answer.

The model's own words give what a tool span may lack: call id, argument names, the moment and order of issue, and calls
that never became a span. Later inputs repeat them; each counts once.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet

from luckrate_otel.facts import Call, Facts, Message, Text
from luckrate_otel.join.answers import answered, calls_and_answers, nth, pairs_of
from luckrate_otel.join.issue import Issue, Key, key_of
from luckrate_otel.join.model_calls import ModelCall, Scope, is_last
from luckrate_otel.join.own_ids import Asked, Listed, under_own_ids
from luckrate_otel.join.retold import with_retold
from luckrate_otel.record import replace

# Latest calls of other conversations that are searched for what one lists; a bound against quadratic cost.
MAX_TAKEN_OVER = 512


def issues(
    models: tuple[ModelCall, ...], containers: Iterable[Facts], is_cut: Callable[[str], bool], *, whole: bool
) -> tuple[Issue, ...]:
    """Every tool call that was asked for in this run, answered where an answer is shown.

    containers: facts of agents, workflows and crews. is_cut: see Tree. whole: nothing but messages tells of calls in
    this run, so what a first input already holds of the present turn counts too.
    """
    ends = {model.scope: model for model in models}  # the last call of each conversation
    heard = {model.scope for model in models if model.fact.inputs}
    found: list[Issue] = []
    asked: list[tuple[ModelCall, list[Issue]]] = []
    going: list[Issue] = []  # of model calls that had not ended when the one at hand began
    for model in models:
        start_ns = model.fact.head.start_ns
        if going:
            going = [i for i in going if i.end_ns > start_ns]
        rivals = [i for i in going if i.source.head.scope != model.fact.head.scope] if going else None
        new = _asked(model, Counter([key_of(i.call) for i in rivals]) if rivals else None, ends, heard)
        asked.append((model, new))
        if new:
            found += new
            going += new
    # Where no history repeats calls there is nothing to tell apart or to look up: saves 2 µs per span.
    if _repeated(models):
        under_ids = list(_under_own_ids(asked, is_cut))
        found = with_retold(under_ids, ends, heard, whole=whole)
        found = answered(found, tuple([model for model, _ in under_ids]))
    return tuple(_with_listed(containers, found))


def _repeated(models: Iterable[ModelCall]) -> bool:
    """Whether any input tells of calls or answers."""
    for model in models:
        for message in model.fact.inputs:
            for part in message.parts:
                if not isinstance(part, Text):
                    return True
    return False


def _asked(
    model: ModelCall, twins: Counter[Key] | None, ends: Mapping[Scope, ModelCall], heard: AbstractSet[Scope]
) -> list[Issue]:
    """The calls of a model's output, less those that a second instrumentation of the same model call has shown."""
    found: list[Issue] = []
    calls = [p for m in model.fact.outputs for p in m.parts if isinstance(p, Call)]
    if not calls:
        return found
    fact, scope = model.fact, model.scope
    start_ns, end_ns = fact.head.start_ns, fact.head.end_ns
    last = is_last(ends[scope], fact, start_ns)
    shown = not last and scope in heard
    for position, call in enumerate(calls):
        if twins:
            key = key_of(call)
            if twins[key]:
                twins[key] -= 1
                continue
        found.append(Issue(call, fact, scope, position, start_ns, end_ns, False, None, None, last, shown))
    return found


def _under_own_ids(
    asked: Iterable[tuple[ModelCall, list[Issue]]], is_cut: Callable[[str], bool]
) -> Iterable[tuple[ModelCall, list[Issue]]]:
    """The same model calls, with the ids in their inputs under which calls were asked for: by the same conversation, by
    others that it took over when it began (a handoff), or by model calls of which nobody knows whose they are.
    """
    earlier: dict[Scope, list[Asked]] = {}
    everywhere: deque[Asked] = deque(maxlen=MAX_TAKEN_OVER)
    cut: deque[Asked] = deque(maxlen=MAX_TAKEN_OVER)
    for model, own in asked:
        listed = Listed(model.fact.inputs)
        known = earlier.get(model.scope)
        begun_ns = model.start_ns
        before = (a for a in (known or ()) if a.start_ns < begun_ns)
        others = (a for a in (everywhere if known is None else cut) if a.start_ns < begun_ns)
        inputs = under_own_ids(model.fact.inputs, listed, before, others)
        if known is None:
            known = earlier[model.scope] = _taken_over(everywhere, inputs) if listed.calls else []
        if own:
            new = [Asked(issue.call, listed, begun_ns) for issue in own]
            known += new
            everywhere += new
            if is_cut(model.fact.head.span_id):
                cut += new
        yield model if inputs is model.fact.inputs else replace(model, fact=replace(model.fact, inputs=inputs)), own


def _taken_over(asked: Iterable[Asked], inputs: tuple[Message, ...]) -> list[Asked]:
    ids = Listed(inputs).ids
    return [a for a in asked if a.call.call_id in ids]


def _with_listed(facts: Iterable[Facts], known: list[Issue]) -> list[Issue]:
    """The known issues and the calls listed only by an agent, workflow or crew span as a whole. What an agent lists is
    of this run, and so is a call of its conversation that was told only as perhaps older.
    """
    listing = [f for f in facts if f.outputs and any(isinstance(p, Call) for m in f.outputs for p in m.parts)]
    if not listing:
        return known
    found = list(known)
    counts = Counter(key_of(i.call) for i in known if not i.old)
    old = {(i.scope[0], key_of(i.call)): at for at, i in enumerate(known) if i.old}
    for fact in listing:
        listed = Counter[Key]()
        answers = pairs_of(calls_and_answers(fact.outputs))
        position = 0
        for message in fact.outputs:
            for call in (p for p in message.parts if isinstance(p, Call)):
                key = key_of(call)
                listed[key] += 1
                position += 1
                if listed[key] <= counts[key]:
                    continue
                if (at := old.pop((fact.head.span_id, key), None)) is not None:
                    found[at] = replace(found[at], old=False)
                    continue
                answer = nth(answers, key, listed[key] - 1)
                scope = (fact.head.span_id, "")
                start = fact.head.start_ns
                found.append(
                    Issue(call, fact, scope, position, start, start, True, message.name, answer, answer is None)
                )
        for key, n in listed.items():
            counts[key] = max(counts[key], n)
    return found
