"""Model calls → the tool calls that they asked for, each once, with its answer.

The model's own words give what a tool span may lack: call id, argument names, the moment and order of issue, and calls
that never became a span. Later inputs repeat them; each counts once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet

from luckrate_otel.facts import Call, Facts, Text
from luckrate_otel.join.answers import answered, calls_and_answers, nth, pairs_of
from luckrate_otel.join.history import split_history
from luckrate_otel.join.issue import Issue, Key, key_of
from luckrate_otel.join.model_calls import ModelCall, Scope
from luckrate_otel.join.own_ids import under_own_ids
from luckrate_otel.record import replace


def issues(models: tuple[ModelCall, ...], containers: Iterable[Facts], *, whole: bool) -> tuple[Issue, ...]:
    """Every tool call that was asked for in this run, answered where an answer is shown.

    containers: facts of agents, workflows and crews. whole: nothing but messages tells of calls in this run, so what a
    first input already holds of the present turn counts too.
    """
    ends = {model.scope: model for model in models}  # the last call of each conversation
    heard = {model.scope for model in models if model.fact.inputs}
    found: list[Issue] = []
    going: list[Issue] = []  # of model calls that had not ended when the one at hand began
    for model in models:
        start_ns = model.fact.head.start_ns
        if going:
            going = [i for i in going if i.end_ns > start_ns]
        rivals = [i for i in going if i.source.head.scope != model.fact.head.scope] if going else None
        new = _asked(model, Counter([key_of(i.call) for i in rivals]) if rivals else None, ends, heard)
        if new:
            found += new
            going += new
    # Where no history repeats calls there is nothing to tell apart or to look up: saves 2 µs per span.
    if _repeated(models):
        models = _under_own_ids(models, found)
        found += _only_in_inputs(models, found, ends, heard, whole=whole)
        found = answered(found, models)
    found += _only_in_containers(containers, found)
    return tuple(found)


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
    last = _is_last(ends[scope], fact, start_ns)
    shown = not last and scope in heard
    for position, call in enumerate(calls):
        if twins:
            key = key_of(call)
            if twins[key]:
                twins[key] -= 1
                continue
        found.append(Issue(call, fact, scope, position, start_ns, end_ns, False, None, None, last, shown))
    return found


def _is_last(own: ModelCall, source: Facts, start_ns: int) -> bool:
    """Whether `own`, the last model call of its conversation, came no later than what this source asked for then."""
    return own.fact.head.start_ns < start_ns or source.head.span_id in own.ids


def _under_own_ids(models: tuple[ModelCall, ...], asked: Iterable[Issue]) -> tuple[ModelCall, ...]:
    by_scope: dict[Scope, list[Issue]] = {}
    for issue in asked:
        by_scope.setdefault(issue.scope, []).append(issue)
    done = []
    for model in models:
        before = (i.call for i in by_scope.get(model.scope, ()) if i.start_ns < model.start_ns)  # seldom looked at
        inputs = under_own_ids(model.fact.inputs, before)
        done.append(model if inputs is model.fact.inputs else replace(model, fact=replace(model.fact, inputs=inputs)))
    return tuple(done)


def _only_in_inputs(
    models: tuple[ModelCall, ...],
    known: list[Issue],
    ends: Mapping[Scope, ModelCall],
    heard: AbstractSet[Scope],
    *,
    whole: bool,
) -> list[Issue]:
    """Calls seen only in the history of a later call: the output that asked for them was not captured."""
    counts = Counter(key_of(i.call) for i in known)
    earlier: dict[Scope, ModelCall] = {}
    since: dict[Scope, int] = {}  # start of the last model call whose inputs are shown; 0 before there is one
    old: Counter[Key] = Counter()
    found: list[Issue] = []
    for model in models:
        before, begun_ns = earlier.get(model.scope), since.get(model.scope, 0)
        earlier[model.scope] = model
        if model.fact.inputs:
            since[model.scope] = model.start_ns
        calls = [p for m in model.fact.inputs for p in m.parts if isinstance(p, Call)]
        if not calls:
            continue
        listed = Counter[Key]()
        if not begun_ns:
            past, present = split_history(model.fact.inputs)
            # What a conversation starts with happened before this run; what the present turn holds too, unless calls
            # of a model came before this one whose inputs are not shown.
            ours = whole or before is not None
            started_with = past if ours else model.fact.inputs
            old |= Counter(key_of(p) for m in started_with for p in m.parts if isinstance(p, Call)) - counts
            calls = [p for m in present for p in m.parts if isinstance(p, Call)] if ours else []
        for position, call in enumerate(calls):
            key = key_of(call)
            listed[key] += 1
            if listed[key] <= counts[key] + old[key] or (before is None and listed[key] <= counts[key]):
                continue
            counts[key] += 1
            start, end = (begun_ns, before.end_ns) if before else (model.start_ns, model.start_ns)
            source = before.fact if before else model.fact
            last = _is_last(ends[model.scope], source, start)
            shown = not last and model.scope in heard
            found.append(Issue(call, source, model.scope, position, start, end, last=last, shown=shown))
    return found


def _only_in_containers(facts: Iterable[Facts], known: list[Issue]) -> list[Issue]:
    """Calls listed only by an agent, workflow or crew span as a whole."""
    found: list[Issue] = []
    listing = [f for f in facts if f.outputs and any(isinstance(p, Call) for m in f.outputs for p in m.parts)]
    if not listing:
        return found
    counts = Counter(key_of(i.call) for i in known)
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
                answer = nth(answers, key, listed[key] - 1)
                scope = (fact.head.span_id, "")
                start = fact.head.start_ns
                found.append(
                    Issue(call, fact, scope, position, start, start, True, message.name, answer, answer is None)
                )
        for key, n in listed.items():
            counts[key] = max(counts[key], n)
    return found
