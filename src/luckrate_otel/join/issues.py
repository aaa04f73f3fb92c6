"""Model calls → the tool calls that they asked for, with the answer that a later model call got to see.

The model's own words give what a tool span may lack: call id, argument names, the moment and order of issue, and
calls that
never became a span. Later inputs repeat them; each counts once.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from itertools import islice
from operator import attrgetter

from luckrate_otel.adapters.structured import dumps
from luckrate_otel.facts import Call, Facts, Message, Response, Role, Text
from luckrate_otel.join.executions import canonical
from luckrate_otel.join.history import under_own_ids
from luckrate_otel.join.tree import Tree
from luckrate_otel.record import record, replace
from luckrate_otel.telemetry import NOTHING

Scope = tuple[str, str]
Key = tuple[str, str]


@record(frozen=True, slots=True)
class ModelCall:
    """One call of a model, however many spans show it. fact: what they say together; ids: all their spans."""

    fact: Facts
    scope: Scope
    outermost: bool
    ids: tuple[str, ...] = ()

    @property
    def start_ns(self) -> int:
        return self.fact.head.start_ns

    @property
    def end_ns(self) -> int:
        return self.fact.head.end_ns


@record(frozen=True, slots=True)
class Issue:
    """A tool call that a model asked for.

    source: the span that shows it; by a model, or (container) only listed by the agent or crew as a whole.
    position: its place within the turn. answer: what later input shows. last: no later call of the same
    conversation was seen.
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


def key_of(call: Call) -> Key:
    return canonical(call.tool), call.call_id or dumps(call.args)


# ---- model calls -------------------------------------------------------------------------------


def model_calls(facts: list[Facts], tree: Tree) -> tuple[ModelCall, ...]:
    """Model calls by start; facts: those of models. A model span inside another is the same call (ADK's call_llm, two
    instrumentations at once).
    """
    if tree.are_leaves(facts):  # as in executions()
        found = [_model_call([fact], tree) for fact in facts]
    else:
        groups: dict[str, list[Facts]] = {}
        for fact in facts:
            groups.setdefault(_outermost(fact, tree), []).append(fact)
        found = [_model_call(group, tree) for group in groups.values()]
    return tuple(sorted(found, key=_BY_START))


_BY_START = attrgetter("fact.head.start_ns", "fact.head.end_ns", "ids")


def _outermost(fact: Facts, tree: Tree) -> str:
    top = fact.head.span_id or f"{fact.head.start_ns}{fact.head.name}"
    for above in tree.above(fact.head.span_id):
        if above.role in (Role.AGENT, Role.TOOL):
            break
        if above.role is Role.MODEL:
            top = above.head.span_id
    return top


def _model_call(group: list[Facts], tree: Tree) -> ModelCall:
    if len(group) == 1:
        (only,) = group
        span_id = only.head.span_id
        return ModelCall(only, tree.scope(only), not tree.in_a_call(span_id), (span_id,))
    ordered = sorted(group, key=lambda f: (f.head.start_ns, -f.head.end_ns, f.head.span_id))
    first = replace(
        ordered[0],
        agent=next((f.agent for f in ordered if f.agent), None),
        inputs=max((f.inputs for f in ordered), key=len),
        outputs=max((f.outputs for f in ordered), key=_weight),
        system=next((f.system for f in ordered if f.system), ()),
        definitions=next((f.definitions for f in ordered if f.definitions), ()),
        finish_reasons=next((f.finish_reasons for f in reversed(ordered) if f.finish_reasons), ()),
        tokens=next((f.tokens for f in ordered if f.tokens is not None), None),
    )
    ids = tuple(f.head.span_id for f in ordered)
    return ModelCall(first, tree.scope(first), not tree.in_a_call(first.head.span_id), ids)


def _weight(messages: tuple[Message, ...]) -> tuple[int, int]:
    parts = [p for m in messages for p in m.parts]
    return sum(isinstance(p, Call) for p in parts), len(parts)


# ---- issues ------------------------------------------------------------------------------------


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
    if _repeated(
        models
    ):  # where no history repeats calls there is nothing to tell apart or to look up: saves 2 µs per span
        models = _under_own_ids(models, found)
        found += _only_in_inputs(models, found, ends, heard, whole=whole)
        found = _answered(found, models)
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
        found.append(Issue(call, fact, scope, position, start_ns, end_ns, last=last, shown=shown))
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


def split_history(inputs: tuple[Message, ...]) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    """Input of a model call, cut where the present turn begins: at the last block of user messages with a text."""
    at = len(inputs)
    while at > 0 and not _is_users(inputs[at - 1]):
        at -= 1
    while at > 0 and _is_users(inputs[at - 1]):
        at -= 1
    return inputs[:at], inputs[at:]


def _is_users(message: Message) -> bool:
    if message.role not in ("user", "unknown"):
        return False
    for part in message.parts:  # noqa: SIM110 - a third of the price of any(), several times per run
        if isinstance(part, Text):
            return True
    return False


def _only_in_containers(facts: Iterable[Facts], known: list[Issue]) -> list[Issue]:
    """Calls listed only by an agent, workflow or crew span as a whole."""
    found: list[Issue] = []
    listing = [f for f in facts if f.outputs and any(isinstance(p, Call) for m in f.outputs for p in m.parts)]
    if not listing:
        return found
    counts = Counter(key_of(i.call) for i in known)
    for fact in listing:
        listed = Counter[Key]()
        answers = _pairs(_calls_and_answers(fact.outputs))
        position = 0
        for message in fact.outputs:
            for call in (p for p in message.parts if isinstance(p, Call)):
                key = key_of(call)
                listed[key] += 1
                position += 1
                if listed[key] <= counts[key]:
                    continue
                answer = _nth(answers, key, listed[key] - 1)
                scope = (fact.head.span_id, "")
                start = fact.head.start_ns
                found.append(
                    Issue(call, fact, scope, position, start, start, True, message.name, answer, answer is None)
                )
        for key, n in listed.items():
            counts[key] = max(counts[key], n)
    return found


# ---- answers -----------------------------------------------------------------------------------

Answers = Mapping[Key, list[Response | None]]
Shown = tuple[ModelCall, Answers, Mapping[str, Response]]  # what the input of a model call shows: in pairs, and by id


def _calls_and_answers(messages: Iterable[Message]) -> list[Call | Response]:
    return [p for m in messages for p in m.parts if not isinstance(p, Text)]


def _pairs(parts: Iterable[Call | Response]) -> Answers:
    """Per call its answer, in order; by id, else (Gemini) by name, else by order. None: not answered there."""
    found: dict[Key, list[Response | None]] = {}
    waiting: list[tuple[Call, Key, int]] = []
    for part in parts:
        if isinstance(part, Call):
            key = key_of(part)
            row = found.setdefault(key, [])
            row.append(None)
            waiting.append((part, key, len(row) - 1))
        elif waiting:
            at = _asked_by(part, waiting)
            if at is not None:
                _, key, n = waiting.pop(at)
                found[key][n] = part
    return found


def _asked_by(response: Response, waiting: list[tuple[Call, Key, int]]) -> int | None:
    if response.call_id:
        by_id = [i for i, (call, _, _) in enumerate(waiting) if call.call_id == response.call_id]
        if by_id:
            return by_id[-1]
        if all(call.call_id for call, _, _ in waiting):
            return None
    if response.tool:
        by_name = [i for i, (call, _, _) in enumerate(waiting) if canonical(call.tool) == canonical(response.tool)]
        return by_name[0] if by_name else None
    return next((i for i, (call, _, _) in enumerate(waiting) if not call.call_id or not response.call_id), None)


def _nth(answers: Answers, key: Key, n: int) -> Response | None:
    row = answers.get(key, [])
    return row[n] if n < len(row) else None


def _answered(found: Iterable[Issue], models: tuple[ModelCall, ...]) -> list[Issue]:
    """Give each call the first answer that a later input shows, of its own conversation if it has one."""
    first: dict[Scope, Answers] = {}
    pairs: list[Shown] = []  # of the models whose input shows an answer at all
    for model in models:
        told = _calls_and_answers(model.fact.inputs)
        answers = _pairs(told)
        first.setdefault(model.scope, answers)
        if told:
            pairs.append((model, answers, _loose(told)))
    seen: Counter[tuple[Scope, Key]] = Counter()
    done = []
    for issue in found:
        key = key_of(issue.call)
        n = len(first.get(issue.scope, NOTHING).get(key, ())) + seen[issue.scope, key]
        if issue.end_ns <= issue.start_ns:  # taken from a first input: it is among the first ones itself
            n = seen[issue.scope, key]
        seen[issue.scope, key] += 1
        answer = _answer(issue, key, n, pairs)
        done.append(issue if answer is None else replace(issue, answer=answer))
    return done


def _answer(issue: Issue, key: Key, n: int, pairs: list[Shown]) -> Response | None:
    """The n-th answer to such a call in the first later input of its conversation that has it, else in any other."""
    after = bisect_left(pairs, issue.start_ns, key=lambda shown: shown[0].start_ns)
    later = (p for p in islice(pairs, after, None) if issue.source.head.span_id not in p[0].ids)
    answer = _first_answer((p for p in later if p[0].scope == issue.scope), issue, key, n)
    if answer is None:
        others = (p for p in islice(pairs, after, None) if p[0].scope != issue.scope)
        answer = _first_answer(others, issue, key, 0)
    if answer is None and issue.end_ns <= issue.start_ns:
        answer = _first_answer([p for p in pairs if issue.source.head.span_id in p[0].ids], issue, key, n)
    return answer


def _first_answer(pairs: Iterable[Shown], issue: Issue, key: Key, n: int) -> Response | None:
    for _, answers, loose in pairs:
        found = _nth(answers, key, n)
        if found is None and issue.call.call_id and key not in answers:
            found = loose.get(issue.call.call_id)  # the input was shortened: the answer is there, the question is not
        if found is not None:
            return found
    return None


def _loose(parts: Iterable[Call | Response]) -> Mapping[str, Response]:
    return {p.call_id: p for p in parts if isinstance(p, Response) and p.call_id}
