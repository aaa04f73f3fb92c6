"""`Trajectory` + `Spec` → `Verdict`. Pure, and total: whatever the run holds, there is an answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from luckrate_otel.facts import Gap
from luckrate_otel.model import (
    NotEvaluated,
    OutputSource,
    OutputState,
    PathState,
    Severity,
    Step,
    Trajectory,
    Turn,
    Verdict,
    VerdictLabel,
    Violation,
)
from luckrate_otel.output import Output, judge_output
from luckrate_otel.plural import plural
from luckrate_otel.record import replace
from luckrate_otel.rules.finding import on_run
from luckrate_otel.rules.outcome import Outcome
from luckrate_otel.rules.rule import Rule
from luckrate_otel.spec import PROVENANCE, Spec
from luckrate_otel.telemetry import Value

# Findings listed per rule, severity and run. Nobody reads more of one kind, and a run that invents thousands of ids
# must not flood a backend. With `provenance: substring`, which promises what luckrate 0.3 finds, there is no limit.
MAX_LISTED = 100

TaskInput = str | Sequence[str | Turn] | None


def check(
    steps: Trajectory | Sequence[Step],
    spec: Spec | Mapping[str, Value],
    task_input: TaskInput = "",
    *,
    system: str = "",
    output_ok: bool | None = None,
) -> Verdict:
    """Grade one run.

    steps: in the order they were issued; ValueError if one is no Step. spec: a Spec, or the mapping it is made from
    (SpecError if that is wrong).
    task_input: what the user said: one text, or texts and turns; None = not captured. system: what the operator said.
    Of a Trajectory, which knows both, they replace its own where given. output_ok: whether the output was right, where
    the caller knows; None leaves it to the spec's `output:`.
    """
    parsed = spec if isinstance(spec, Spec) else Spec.from_mapping(spec)
    return _grade(_trajectory(steps, task_input, system), parsed, output_ok)


def not_graded(
    trajectory: Trajectory, reason: str, spec: Spec | None = None, *, output_ok: bool | None = None
) -> Verdict:
    """The verdict on a run that no rule was asked about. reason: `no_spec`, `no_agent`, `no_tools` or `error`."""
    output, source = _output(trajectory, spec.output if spec else Output(), output_ok)
    return Verdict(
        verdict=VerdictLabel.NOT_GRADED,
        path=PathState.UNKNOWN,
        output=output,
        output_source=source,
        spec=spec.name if spec else None,
        spec_version=spec.version if spec else None,
        case=run_case(trajectory),
        reason=reason,
    )


def run_case(trajectory: Trajectory) -> str:
    """The case a run attempts: as the telemetry names it, else its task's text, else the run itself."""
    return trajectory.case or trajectory.task_input or trajectory.run_id


# ---- stages ------------------------------------------------------------------------------------


def _grade(trajectory: Trajectory, spec: Spec, output_ok: bool | None) -> Verdict:
    reason = _ungradable(trajectory)
    if reason is not None:
        return not_graded(trajectory, reason, spec, output_ok=output_ok)
    known = _by_canonical_name(trajectory, spec)
    outcomes = [(rule, _ask(rule, known, spec)) for rule in spec.rules]
    violations: list[Violation] = []
    not_evaluated: list[NotEvaluated] = []
    vacuous: list[str] = []
    for rule, outcome in outcomes:
        if outcome.violations:
            violations += _listed([_found(rule, violation, spec) for violation in outcome.violations], known, spec)
        elif outcome.gap is not None:
            not_evaluated.append(NotEvaluated(rule.id, outcome.gap, spec.severity(rule) or rule.severity))
        if outcome.vacuous:
            vacuous.append(rule.id)
    path = _path(outcomes, spec)
    output, source = _output(trajectory, spec.output, output_ok)
    return Verdict(
        verdict=_label(path, output),
        path=path,
        output=output,
        output_source=source,
        violations=tuple(violations),
        not_evaluated=tuple(not_evaluated),
        vacuous=tuple(vacuous),
        spec=spec.name,
        spec_version=spec.version,
        case=run_case(trajectory),
    )


def _ungradable(trajectory: Trajectory) -> str | None:
    """Silence is not a pass: a run that could not have shown a tool call has no path to judge."""
    if not trajectory.has_agent:
        return "no_agent"
    return None if trajectory.coverage.tools else "no_tools"


def _by_canonical_name(trajectory: Trajectory, spec: Spec) -> Trajectory:
    if not spec.aliases:
        return trajectory

    def renamed(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        return tuple(replace(step, tool=spec.canonical_tool(step.tool)) for step in steps)

    return replace(
        trajectory,
        steps=renamed(trajectory.steps),
        history=replace(trajectory.history, steps=renamed(trajectory.history.steps)),
        definitions=tuple(replace(d, name=spec.canonical_tool(d.name)) for d in trajectory.definitions),
    )


def _ask(rule: Rule, trajectory: Trajectory, spec: Spec) -> Outcome:
    """One rule is isolated from the next: what it cannot digest leaves it not evaluated, and the others standing."""
    try:
        return rule.evaluate(trajectory, spec)
    except Exception:  # noqa: BLE001 - values come from models and web pages; no rule may lose a run
        return Outcome(gap=Gap.ERROR)


def _found(rule: Rule, violation: Violation, spec: Spec) -> Violation:
    """A rule's violation as this spec has it. content: the clause's, then what the rule adds to tell two apart."""
    severity = spec.overrides(rule) or violation.severity
    content = spec.contents.get(violation.clause, "") + violation.content
    if severity is violation.severity and content == violation.content:
        return violation
    return replace(violation, severity=severity, content=content)


def _listed(found: Sequence[Violation], trajectory: Trajectory, spec: Spec) -> Iterator[Violation]:
    """The first findings of each severity, in order; then, for what is left over, one of the run that counts it."""
    if len(found) <= MAX_LISTED or spec.get(PROVENANCE) == "substring":
        yield from found
        return
    left: Counter[Severity] = Counter()
    for violation in found:
        left[violation.severity] += 1
        if left[violation.severity] <= MAX_LISTED:
            yield violation
    rule = found[0].rule
    for severity, count in left.items():
        if count > MAX_LISTED:
            message = f"{plural(count - MAX_LISTED, 'more finding is', 'more findings are')} not listed"
            yield on_run(trajectory, rule=rule, clause=rule, severity=severity, message=message)


def _path(outcomes: Sequence[tuple[Rule, Outcome]], spec: Spec) -> PathState:
    """Warnings count: the gate protects the build, the path tells the truth."""
    if any(outcome.violations for _, outcome in outcomes):
        return PathState.BAD
    if any(outcome.gap is not None and spec.writes(rule) for rule, outcome in outcomes):
        return PathState.UNKNOWN
    return PathState.OK


def _label(path: PathState, output: OutputState) -> VerdictLabel:
    if output is OutputState.NOT_OK:
        return VerdictLabel.FAIL
    if output is OutputState.UNKNOWN:
        return VerdictLabel.UNKNOWN
    return {
        PathState.BAD: VerdictLabel.LUCKY,
        PathState.UNKNOWN: VerdictLabel.UNVERIFIED,
        PathState.OK: VerdictLabel.PASS,
    }[path]


def _output(trajectory: Trajectory, output: Output, output_ok: bool | None) -> tuple[OutputState, OutputSource]:
    """As the caller tells, who has checked the output; else as the spec's sources do."""
    if output_ok is None:
        return judge_output(trajectory, output)
    return (OutputState.OK if output_ok else OutputState.NOT_OK), OutputSource.CHECK


# ---- the library's arguments -------------------------------------------------------------------


def _trajectory(steps: Trajectory | Sequence[Step], task_input: TaskInput, system: str) -> Trajectory:
    given = steps.steps if isinstance(steps, Trajectory) else tuple(steps)
    for index, step in enumerate(given):
        if not isinstance(step, Step):  # no rule could digest it, and a spec with no rule of its own would pass it
            raise ValueError(f"steps[{index}]: expected a Step, got {type(step).__name__}; write Step(tool, args)")
    if not isinstance(steps, Trajectory):
        return Trajectory(steps=given, turns=_turns(task_input), system=(system,) if system else ())
    if task_input:
        steps = replace(steps, turns=_turns(task_input))
    return replace(steps, system=(system,)) if system else steps


def _turns(task_input: TaskInput) -> tuple[Turn, ...]:
    if task_input is None:
        return ()
    if isinstance(task_input, list | tuple):
        return tuple(turn if isinstance(turn, Turn) else Turn(str(turn)) for turn in task_input)
    return (Turn(str(task_input)),)
