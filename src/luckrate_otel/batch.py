"""Files → trajectories: traces, logs and payloads that are given together are joined."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from luckrate_otel.adapters import read
from luckrate_otel.adapters.crewai import CREW_ID, NATIVE
from luckrate_otel.adapters.unrecognised import describe
from luckrate_otel.conversation import Conversations
from luckrate_otel.facts import ClosedRun, CloseReason, Facts
from luckrate_otel.join import join
from luckrate_otel.model import Trajectory, Verdict
from luckrate_otel.otlp import files
from luckrate_otel.otlp.files import FileProblem
from luckrate_otel.payloads import merge_with_spans, recognise, same_run
from luckrate_otel.pipeline import judge
from luckrate_otel.runs import RunGroup, partition
from luckrate_otel.spec import Spec
from luckrate_otel.telemetry import LogRecord, Span


@dataclass(frozen=True, slots=True)
class Batch:
    """What a set of files held.

    trajectories: by start time. problems: parts that could not be used. unrecognised: what was seen where no run
    was, "" else.
    """

    trajectories: tuple[Trajectory, ...]
    problems: tuple[FileProblem, ...] = ()
    unrecognised: str = ""


def read_files(paths: Iterable[str]) -> Batch:
    """Read files and rebuild every run in them. Raises InputError for a file that holds nothing usable."""
    contents = [files.read(path) for path in paths]
    spans = [s for c in contents for s in c.spans]
    logs = [r for c in contents for r in c.logs]
    stored: list[Trajectory] = []
    unknown: list[str] = []
    for content in contents:
        if content.other is None:
            continue
        found = recognise(list(content.other) if isinstance(content.other, tuple) else content.other)
        if found is None:
            unknown.append(f"JSON of no known form, {_shape(content.other)}; {files.FORMS}")
        else:
            stored += found
    runs = joined(trajectories(spans, logs), stored)
    if not runs and (spans or logs):
        unknown.insert(0, describe(spans, logs))
    return Batch(runs, tuple(p for c in contents for p in c.problems), "\n".join(unknown))


def _shape(value: object) -> str:
    if isinstance(value, Mapping):
        keys = sorted(map(str, value))
        shown = ", ".join(keys[:8]) + (" …" if len(keys) > 8 else "")
        return f"an object with the {'key' if len(keys) == 1 else 'keys'} {shown}" if keys else "an empty object"
    if isinstance(value, (list, tuple)):
        return f"an array of {len(value)}" if value else "an empty array"
    return "a single value"


def joined(found: Iterable[Trajectory], stored: Iterable[Trajectory]) -> tuple[Trajectory, ...]:
    """Runs from spans and from payloads, each run once, by start."""
    runs = list(found)
    for payload in stored:
        at = next((i for i, run in enumerate(runs) if same_run(run, payload)), None)
        if at is None:
            runs.append(payload)
        else:
            runs[at] = merge_with_spans(runs[at], payload)
    return in_conversation(runs)


def grade(runs: Iterable[Trajectory], specs: Sequence[Spec]) -> tuple[tuple[Trajectory, Verdict], ...]:
    """Judge runs, in their order."""
    return tuple((run, judge(run, specs)) for run in runs)


def trajectories(spans: Iterable[Span], logs: Iterable[LogRecord] = ()) -> tuple[Trajectory, ...]:
    """Every run in these spans and log records, by start; their order does not matter. Duplicates count once."""
    unique: dict[tuple[str, str, int, str], Span] = {}
    for span in sorted(spans, key=lambda s: s.head.start_ns):  # growing histories are cheap to read in their own order
        unique.setdefault((span.head.trace_id, span.head.span_id, span.head.kind, span.head.service), span)
    links: dict[str, dict[str, str]] = {}
    facts: dict[str, list[Facts]] = {}
    for span in unique.values():
        links.setdefault(span.head.trace_id, {})[span.head.span_id] = span.head.parent_id
        if (found := read(span)) is not None:
            facts.setdefault(_group(found), []).append(found)
    for log in dict.fromkeys(_key(r) for r in logs):
        if (told := read(log.record)) is not None:
            facts.setdefault(_group(told), []).append(told)
    runs = [run for group in facts.values() for run in _runs(group, links)]
    return in_conversation(map(join, runs))


def in_conversation(runs: Iterable[Trajectory]) -> tuple[Trajectory, ...]:
    """Runs by start, each placed in its conversation. A closed set of runs, so nothing of one is forgotten."""
    store = Conversations()
    placed = []
    for run in sorted(runs, key=lambda t: (t.start_ns, t.run_id)):
        placed.append(store.place(run))
        store.remember(placed[-1], run.start_ns)
    return tuple(placed)


@dataclass(frozen=True, slots=True)
class _Log:
    """A log record that can be compared: records have no id, so a retry is told by all that it says."""

    text: str
    record: LogRecord

    def __hash__(self) -> int:
        return hash(self.text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Log) and self.text == other.text


def _key(record: LogRecord) -> _Log:
    return _Log(repr(record), record)


def _group(fact: Facts) -> str:
    """The trace; for CrewAI's own telemetry, whose spans are each a trace of their own, the crew."""
    crew = fact.attributes.get(CREW_ID) if fact.adapter == NATIVE else None
    return f"crew {crew}" if crew else fact.head.trace_id


def _runs(group: list[Facts], links: Mapping[str, Mapping[str, str]]) -> Iterable[ClosedRun]:
    ids = tuple(sorted({f.head.trace_id for f in group}))
    above = {span: parent for trace_id in ids for span, parent in links.get(trace_id, {}).items()}
    for run in partition(group, above, final=True):
        if run.is_run:
            yield _closed(run, above)


def _closed(run: RunGroup, links: Mapping[str, str]) -> ClosedRun:
    root = run.root.head if run.root else None
    traces = tuple(sorted({f.head.trace_id for f in run.facts}))
    return ClosedRun(
        run_id=f"{root.trace_id if root else traces[0]}:{root.span_id if root else ''}",
        trace_ids=traces,
        facts=run.facts,
        close_reason=CloseReason.END_OF_INPUT,
        complete=run.complete,
        root=root,
        links=links,
        attributes=run.root.attributes if run.root else {},
    )
