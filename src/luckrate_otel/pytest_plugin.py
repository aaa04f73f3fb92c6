"""The pytest plugin: a test whose agent emits OpenTelemetry spans in this process is graded against a spec.

    @pytest.mark.luckrate("refunds.yaml", runs=5)
    def test_refund():
        assert "Done" in answer("Refund order 88213.")

That the test passes says that the output was right; the spec says whether the way there was. A hard violation fails the
test; soft ones fail the session when most runs of a test have one. OpenTelemetry is loaded only where the marker is
used.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

    from luckrate_otel.gate import Gate
    from luckrate_otel.model import Trajectory, Verdict
    from luckrate_otel.sdk.collect import SpanCollector
    from luckrate_otel.spec import Spec

MARKER: Final = "luckrate"
RUN: Final = "luckrate_run"
REPORT: Final = "luckrate_report"
UNJUDGED: Final = "luckrate_allow_unjudged"

_MEANING = (
    "luckrate(spec, runs=1, case=None): grade the agent runs of this test against a spec (file, mapping or Spec); "
    "runs: how often the test is run"
)


class Luckrate:
    """The fixture's value. runs: the agent runs of this test so far, by start."""

    def __init__(self, specs: Sequence[Spec], case: str, collector: SpanCollector) -> None:
        self.specs = tuple(specs)
        self.case = case
        self.graded: list[tuple[Trajectory, Verdict]] = []
        self._collector = collector

    def attach(self, provider: TracerProvider) -> None:
        """See the spans of this provider too; the global one is seen without."""
        self._collector.attach(provider)

    @property
    def runs(self) -> tuple[Trajectory, ...]:
        from dataclasses import replace

        from luckrate_otel.batch import trajectories

        found = trajectories(self._collector.spans)
        return tuple(replace(run, case=run.case or self.case) for run in found)


_HANDLE: Final = pytest.StashKey[Luckrate]()
_COLLECTOR: Final = pytest.StashKey["SpanCollector"]()
_RECORDS: Final = pytest.StashKey[list[dict[str, Any]]]()
_UNWRITTEN: Final = pytest.StashKey[str]()


@pytest.fixture
def luckrate(request: pytest.FixtureRequest) -> Luckrate:
    """The grading of this test: its agent runs so far, and `attach` for a provider that is not the global one."""
    handle = request.node.stash.get(_HANDLE, None)
    if handle is None:
        raise pytest.UsageError(f"{request.node.nodeid}: the luckrate fixture needs the marker luckrate(spec)")
    return handle  # type: ignore[no-any-return]  # nodes have no type here


# ---- configuration -------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("luckrate", "grading of agent runs")
    group.addoption(
        "--luckrate-report", dest=REPORT, type=Path, metavar="FILE", help="write the JSON report of all graded runs"
    )
    group.addoption(
        "--luckrate-allow-unjudged",
        dest=UNJUDGED,
        action="store_true",
        help="a hard rule never evaluated is no reason to fail",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MEANING)
    target = config.getoption(REPORT)
    if target is not None and (target.is_dir() or not target.absolute().parent.is_dir()):
        raise pytest.UsageError(f"--luckrate-report {target}: must name a file in a folder that is there")
    config.stash[_RECORDS] = []
    config.pluginmanager.register(_Gatherer(config.stash[_RECORDS]))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """k runs are k tests, so that each is seen, timed and selected as one."""
    marker = metafunc.definition.get_closest_marker(MARKER)
    runs = marker.kwargs.get("runs", 1) if marker else 1
    if not isinstance(runs, int) or runs < 1:
        wanted = f"luckrate runs must be a whole number from 1 on, not {runs!r}"
        raise pytest.UsageError(f"{metafunc.definition.nodeid}: {wanted}")
    if runs > 1:
        metafunc.fixturenames.append(RUN)
        metafunc.parametrize(RUN, range(runs), ids=[f"run{number}" for number in range(runs)])


# ---- one test ------------------------------------------------------------------------------------


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    marker = item.get_closest_marker(MARKER)
    if marker is not None:
        collector = _collector(item.config)
        specs = _specs(item, marker)
        for spec in specs:
            for warning in spec.warnings:
                item.warn(pytest.PytestWarning(f"luckrate: spec {spec.name}: {warning}"))
        item.stash[_HANDLE] = Luckrate(specs, _case(item, marker), collector)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    handle = item.stash.get(_HANDLE, None)
    if handle is None:
        yield
        return
    collector = item.config.stash[_COLLECTOR]
    collector.start()
    try:
        yield
    except pytest.skip.Exception:
        raise
    except (Exception, pytest.fail.Exception):
        _grade(handle, output_ok=False)
        raise
    else:
        _grade(handle, output_ok=True)
        _judge(handle)
    finally:
        collector.stop()


def _grade(handle: Luckrate, *, output_ok: bool) -> None:
    from luckrate_otel.pipeline import judge

    handle.graded = [(run, judge(run, handle.specs, output_ok=output_ok)) for run in handle.runs]


def _judge(handle: Luckrate) -> None:
    """Fail a test that passed by what its agent did."""
    from luckrate_otel.model import Severity

    if not handle.graded:
        pytest.fail(
            "luckrate: no agent run was seen. Spans must be made in this process, by the global TracerProvider or one "
            "given to luckrate.attach()",
            pytrace=False,
        )
    bad = [
        (run, verdict)
        for run, verdict in handle.graded
        if any(violation.severity is Severity.HARD for violation in verdict.violations)
    ]
    if bad:
        pytest.fail(_text(bad), pytrace=False)


def _text(graded: Sequence[tuple[Trajectory, Verdict]]) -> str:
    from luckrate_otel.reports.text import run_text

    return "\n\n".join(run_text(run, verdict) for run, verdict in graded)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    handle = item.stash.get(_HANDLE, None)
    if handle is not None and call.when == "call" and handle.graded:
        from luckrate_otel.reports.verdicts import run_json
        from luckrate_otel.verdict_json import to_record

        # As ASCII: with pytest-xdist the report is made in another process, and what travels there must be UTF-8.
        report.luckrate = [  # type: ignore[attr-defined]  # reports carry what plugins put on them
            json.dumps({"run": run_json(run, verdict), "verdict": to_record(verdict)}) for run, verdict in handle.graded
        ]
        if not report.failed and any(verdict.violations for _, verdict in handle.graded):
            report.sections.append(("luckrate", _text(handle.graded)))
    return report


# ---- the session ---------------------------------------------------------------------------------


class _Summary:
    """Verdicts of all tests, in the process that reports."""

    def __init__(self, config: pytest.Config) -> None:
        from luckrate_otel.luck import luck_rate
        from luckrate_otel.verdict_json import from_record

        records = config.stash[_RECORDS]
        self.runs = [record["run"] for record in records]
        self.verdicts = [from_record(record["verdict"]) for record in records]
        self.luck = luck_rate(self.verdicts)
        self.gate = self._gate(allow_unjudged=bool(config.getoption(UNJUDGED)))

    def _gate(self, *, allow_unjudged: bool) -> Gate:
        from luckrate_otel.gate import gate

        names = {verdict.case: str(run["case"]) for verdict, run in zip(self.verdicts, self.runs, strict=True)}
        return gate(self.verdicts, allow_unjudged=allow_unjudged, names=names)

    def report(self) -> Mapping[str, Any]:
        return {
            "runs": self.runs,
            "luck_rate": self.luck.to_json(),
            "gate": {"failed": self.gate.failed, "reasons": list(self.gate.reasons)},
        }


class _Gatherer:
    """Takes what the reports of tests carry, in the process that reports; the hook itself is given no config."""

    def __init__(self, records: list[dict[str, Any]]) -> None:
        self._records = records

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        # A failure that was expected is no reason to fail the session.
        if not hasattr(report, "wasxfail"):
            self._records.extend(map(json.loads, getattr(report, "luckrate", ())))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Soft majorities and rules that were never judged show only over all runs."""
    config = session.config
    if hasattr(config, "workerinput") or not config.stash[_RECORDS]:
        return
    summary = _Summary(config)
    target = config.getoption(REPORT)
    if target is not None:
        from luckrate_otel.surrogates import mend

        text = mend(json.dumps(summary.report(), ensure_ascii=False)) + "\n"
        try:
            target.write_text(text, encoding="utf-8")
        except OSError as error:  # it must not take the summary of the tests with it
            config.stash[_UNWRITTEN] = f"{target} cannot be written: {(error.strerror or str(error)).lower()}"
    if (summary.gate.failed or _UNWRITTEN in config.stash) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if not config.stash[_RECORDS]:
        return
    from luckrate_otel.reports.text import Style, gate_text, luck_text

    summary = _Summary(config)
    style = Style(colour=terminalreporter.hasmarkup)
    terminalreporter.section("Luck Rate")
    for line in [*_cases(summary.verdicts), *luck_text(summary.luck, style).splitlines()]:
        terminalreporter.write_line(line)
    for line in gate_text(summary.gate, style).splitlines():
        terminalreporter.write_line(line)
    if _UNWRITTEN in config.stash:
        terminalreporter.write_line(f"luckrate: {config.stash[_UNWRITTEN]}", red=True)


def _cases(verdicts: Sequence[Verdict]) -> list[str]:
    """One line per case: how many runs ended in which verdict."""
    from collections import Counter

    from luckrate_otel.reports.text import safe

    cases: dict[str, Counter[str]] = {}
    for verdict in verdicts:
        cases.setdefault(verdict.case, Counter())[verdict.verdict.replace("_", " ")] += 1
    return [
        f"{safe(case)}: {', '.join(f'{count} {label}' for label, count in sorted(counts.items()))}"
        for case, counts in cases.items()
    ]


# ---- spans and specs -----------------------------------------------------------------------------


def _collector(config: pytest.Config) -> SpanCollector:
    """The session's collector, on the global provider. One is made where the application has none."""
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider

    from luckrate_otel.sdk.collect import SpanCollector

    collector = config.stash.setdefault(_COLLECTOR, SpanCollector())
    provider = trace.get_tracer_provider()
    if isinstance(provider, trace.ProxyTracerProvider):
        trace.set_tracer_provider(TracerProvider(shutdown_on_exit=False))
        provider = trace.get_tracer_provider()
    if isinstance(provider, TracerProvider):
        collector.attach(provider)
    return collector


def _specs(item: pytest.Item, marker: pytest.Mark) -> tuple[Spec, ...]:
    from luckrate_otel.errors import SpecError
    from luckrate_otel.spec import Spec
    from luckrate_otel.specfile import load_spec

    unknown = set(marker.kwargs) - {"spec", "runs", "case"}
    given = [*marker.args, *([marker.kwargs["spec"]] if "spec" in marker.kwargs else [])]
    if unknown or not given:
        pytest.fail(f"usage: {_MEANING}", pytrace=False)
    for spec in given:
        if not isinstance(spec, Spec | Mapping | str | Path):
            pytest.fail(f"luckrate: a spec is a file, a mapping or a Spec, not {spec!r}", pytrace=False)
    try:
        return tuple(
            spec
            if isinstance(spec, Spec)
            else Spec.from_mapping(spec)
            if isinstance(spec, Mapping)
            else load_spec(_path(item, spec))
            for spec in given
        )
    except SpecError as error:
        problems = str(error)
    pytest.fail(problems, pytrace=False)  # out here, as pytest shows an exception that was being handled as well


def _path(item: pytest.Item, name: str | Path) -> Path:
    """Beside the test, else from the root directory."""
    beside = item.path.parent / name
    return beside if beside.exists() else item.config.rootpath / name


def _case(item: pytest.Item, marker: pytest.Mark) -> str:
    """The marker's name for it, else the test's own id without the number of the run."""
    named = marker.kwargs.get("case")
    if named is not None:
        return str(named)
    callspec = getattr(item, "callspec", None)
    if callspec is None or RUN not in callspec.params:
        return item.nodeid
    number = callspec.params[RUN]
    name, _, parameters = item.nodeid.partition("[")
    rest = parameters.removesuffix("]").split("-")
    if rest[-1] != f"run{number}" or next(iter(callspec.params)) == RUN:  # another parameter may look the same
        rest.remove(f"run{number}")
    else:
        del rest[-1]
    return f"{name}[{'-'.join(rest)}]" if rest else name
