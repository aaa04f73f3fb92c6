"""The pytest plugin, on test files of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.slow

AGENT = """
import pytest
from opentelemetry import trace

SPEC = {"name": "refunds", "tools": ["look", "pay"], "forbidden": ["pay"], "max_steps": 2, "ground": False}

def agent(*tools, tracer=None):
    tracer = tracer or trace.get_tracer("shop")
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "support"}
    with tracer.start_as_current_span("invoke_agent", attributes=attributes):
        for tool in tools:
            attributes = {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": tool,
                "gen_ai.tool.call.arguments": "{}",
                "gen_ai.tool.call.result": "x",
            }
            with tracer.start_as_current_span(f"execute_tool {tool}", attributes=attributes):
                pass
"""


@pytest.fixture
def run(pytester: pytest.Pytester) -> Any:
    """Run a test file that begins with the agent above."""

    def run(text: str, *options: str) -> pytest.RunResult:
        pytester.makepyfile(AGENT + text)
        # Installed, the plugin is loaded by its entry point; here always by its module.
        plugin = ("-p", "no:luckrate_otel", "-p", "luckrate_otel.pytest_plugin", "-p", "no:randomly")
        return pytester.runpytest_inprocess(*plugin, "-p", "no:cacheprovider", *options)

    return run


def summary(result: pytest.RunResult) -> list[str]:
    lines = result.outlines
    start = next((i for i, line in enumerate(lines) if line.strip("= ") == "Luck Rate"), len(lines))
    end = next((i for i in range(start + 1, len(lines)) if lines[i].startswith("=")), len(lines))
    return [line for line in lines[start + 1 : end] if line]


def test_a_test_whose_agent_keeps_to_the_spec_passes(run: Any) -> None:
    result = run('@pytest.mark.luckrate(SPEC)\ndef test_it():\n    agent("look")\n')
    result.assert_outcomes(passed=1)
    assert result.ret == 0
    assert summary(result) == [
        "test_a_test_whose_agent_keeps_to_the_spec_passes.py::test_it: 1 pass",
        "Luck Rate 0 %: 0 lucky of 1 green, 95 % interval 0 % to 79 %",
        "  1 run",
        "Gate passed",
    ]


def test_a_hard_violation_fails_a_test_that_passed(run: Any) -> None:
    result = run('@pytest.mark.luckrate(SPEC)\ndef test_it():\n    agent("look", "pay")\n')
    result.assert_outcomes(failed=1)
    assert any("✗ hard step 1: forbidden[0]: pay (step 1) must not be called" in line for line in result.outlines)
    assert summary(result)[0].endswith("::test_it: 1 lucky")
    assert summary(result)[1].startswith("Luck Rate 100 %")


@pytest.mark.parametrize("failure", ["assert False", "pytest.fail('no')", "raise OSError"])
def test_a_test_that_fails_is_a_run_with_a_wrong_output(run: Any, failure: str) -> None:
    result = run(f'@pytest.mark.luckrate(SPEC)\ndef test_it():\n    agent("look")\n    {failure}\n')
    result.assert_outcomes(failed=1)
    assert summary(result)[0].endswith("::test_it: 1 fail")
    assert summary(result)[1].startswith("Luck Rate —")


def test_runs_are_tests_of_one_case(run: Any) -> None:
    result = run(
        '@pytest.mark.luckrate(SPEC, runs=3)\n@pytest.mark.parametrize("word", ["a", "b"])\n'
        'def test_it(word):\n    agent("look")\n'
    )
    result.assert_outcomes(passed=6)
    name = "test_runs_are_tests_of_one_case.py::test_it"
    assert summary(result)[:2] == [f"{name}[a]: 3 pass", f"{name}[b]: 3 pass"]


def test_a_parameter_that_looks_like_the_number_of_a_run_stays(run: Any) -> None:
    result = run(
        '@pytest.mark.luckrate(SPEC, runs=2)\n@pytest.mark.parametrize("word", ["run1", "a-run0-b"])\n'
        'def test_it(word):\n    agent("look")\n'
    )
    name = "test_a_parameter_that_looks_like_the_number_of_a_run_stays.py::test_it"
    assert summary(result)[:2] == [f"{name}[run1]: 2 pass", f"{name}[a-run0-b]: 2 pass"]


def test_the_case_can_be_named(run: Any) -> None:
    result = run('@pytest.mark.luckrate(SPEC, case="refund")\ndef test_it():\n    agent("look")\n')
    assert summary(result)[0] == "refund: 1 pass"


@pytest.mark.parametrize(("often", "status"), [(1, 0), (2, 1)])
def test_soft_violations_fail_the_session_by_majority(run: Any, often: int, status: int) -> None:
    result = run(
        f"@pytest.mark.luckrate(SPEC, runs=3)\ndef test_it(luckrate_run):\n"
        f'    agent(*["look"] * (3 if luckrate_run < {often} else 1))\n'
    )
    result.assert_outcomes(passed=3)
    assert result.ret == status
    name = "test_soft_violations_fail_the_session_by_majority.py::test_it"
    assert summary(result)[-1] == (f"  soft: violations in 2 of 3 runs of case {name}" if status else "Gate passed")


def test_a_rule_that_was_never_judged_fails_the_session_unless_allowed(run: Any) -> None:
    text = (
        'HARD = {"untrusted": ["look"], "privileged": ["pay"]}\n'
        "@pytest.mark.luckrate(HARD)\ndef test_it():\n"
        '    tracer = trace.get_tracer("shop")\n'
        '    with tracer.start_as_current_span("a", attributes={"gen_ai.operation.name": "invoke_agent"}):\n'
        '        for tool in ("look", "pay"):\n'
        '            told = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool}\n'
        '            tracer.start_span("t", attributes=told).end()\n'
    )
    result = run(text)
    result.assert_outcomes(passed=1)
    assert result.ret == 1
    assert any(line.startswith("  not_judged: taint") for line in summary(result))
    assert run(text, "--luckrate-allow-unjudged").ret == 0


def test_a_test_without_an_agent_run_fails(run: Any) -> None:
    result = run("@pytest.mark.luckrate(SPEC)\ndef test_it():\n    pass\n")
    result.assert_outcomes(failed=1)
    assert any("luckrate: no agent run was seen" in line for line in result.outlines)


def test_skipped_and_expected_failures_stay_what_they_are(run: Any) -> None:
    result = run(
        '@pytest.mark.luckrate(SPEC)\ndef test_skip():\n    agent("pay")\n    pytest.skip("later")\n'
        '@pytest.mark.xfail\n@pytest.mark.luckrate(SPEC)\ndef test_known():\n    agent("pay")\n'
    )
    result.assert_outcomes(skipped=1, xfailed=1)
    assert result.ret == 0
    assert summary(result) == []


def test_each_test_sees_its_own_runs(run: Any) -> None:
    result = run(
        'agent_span = None\n@pytest.mark.luckrate(SPEC)\ndef test_one():\n    agent("look")\n    agent("look")\n'
        "@pytest.mark.luckrate(SPEC)\ndef test_two(luckrate):\n    assert luckrate.runs == ()\n"
        '    agent("look")\n    assert [step.tool for step in luckrate.runs[0].steps] == ["look"]\n'
        'def test_three():\n    agent("pay")\n'
    )
    result.assert_outcomes(passed=3)
    assert [line.rpartition("::")[2] for line in summary(result)[:2]] == ["test_one: 2 pass", "test_two: 1 pass"]


def test_spans_of_a_provider_of_its_own(run: Any) -> None:
    result = run(
        "from opentelemetry.sdk.trace import TracerProvider\n"
        "@pytest.mark.luckrate(SPEC, runs=2)\ndef test_it(luckrate):\n    provider = TracerProvider()\n"
        "    luckrate.attach(provider)\n    luckrate.attach(provider)\n"
        '    agent("look", tracer=provider.get_tracer("shop"))\n    assert len(luckrate.runs) == 1\n'
    )
    result.assert_outcomes(passed=2)


def test_a_spec_file_beside_the_test_or_at_the_root(run: Any, pytester: pytest.Pytester) -> None:
    pytester.makefile(".yaml", refunds="name: from-file\nforbidden: [pay]\n")
    result = run('@pytest.mark.luckrate("refunds.yaml")\ndef test_it():\n    agent("pay")\n')
    result.assert_outcomes(failed=1)


@pytest.mark.parametrize(
    ("marker", "words"),
    [
        ("luckrate('none.yaml')", "none.yaml: cannot be read: no such file or directory"),
        ("luckrate({'forbiden': []})", "forbiden: unknown key"),
        ("luckrate()", "usage: luckrate(spec, runs=1, case=None)"),
        ("luckrate(5)", "luckrate: a spec is a file, a mapping or a Spec, not 5"),
        ("luckrate(SPEC, k=3)", "usage: luckrate(spec, runs=1, case=None)"),
    ],
)
def test_a_marker_that_cannot_be_used_is_an_error_of_its_test(run: Any, marker: str, words: str) -> None:
    result = run(f'@pytest.mark.{marker}\ndef test_it():\n    agent("look")\n')
    result.assert_outcomes(errors=1)
    assert any(words in line for line in result.outlines)
    assert not any("another exception occurred" in line for line in result.outlines)


@pytest.mark.parametrize("runs", ["0", "'x'", "1.5"])
def test_runs_must_be_a_number(run: Any, runs: str) -> None:
    result = run(f"@pytest.mark.luckrate(SPEC, runs={runs})\ndef test_it():\n    pass\n")
    assert result.ret != 0
    told = f"luckrate runs must be a whole number from 1 on, not {runs}"
    assert any(told in line for line in [*result.outlines, *result.errlines])


def test_what_a_spec_says_in_vain_is_among_the_warnings(run: Any) -> None:
    marker = "luckrate({'name': 'half', 'untrusted': ['look']})"
    result = run(f'@pytest.mark.{marker}\ndef test_it():\n    agent("look")\n', "-W", "default")
    result.assert_outcomes(passed=1)
    told = "PytestWarning: luckrate: spec half: untrusted: the rule taint is off without privileged"
    assert any(told in line for line in result.outlines)


@pytest.mark.parametrize("target", [".", "absent/r.json"])
def test_a_report_that_has_no_place_is_told_before_any_test(run: Any, target: str) -> None:
    result = run('@pytest.mark.luckrate(SPEC)\ndef test_it():\n    agent("look")\n', "--luckrate-report", target)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert f"ERROR: --luckrate-report {target}: must name a file in a folder that is there" in "\n".join(
        result.errlines
    )


def test_a_report_that_cannot_be_written_leaves_the_summary(run: Any, pytester: pytest.Pytester) -> None:
    (pytester.path / "loop").symlink_to("loop")
    result = run('@pytest.mark.luckrate(SPEC)\ndef test_it():\n    agent("look")\n', "--luckrate-report", "loop")
    result.assert_outcomes(passed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "luckrate: loop cannot be written: too many levels of symbolic links" in result.outlines


def test_the_fixture_needs_the_marker(run: Any) -> None:
    result = run("def test_it(luckrate):\n    pass\n")
    result.assert_outcomes(errors=1)
    assert any("the luckrate fixture needs the marker" in line for line in result.outlines)


def test_the_json_report(run: Any, pytester: pytest.Pytester) -> None:
    result = run('@pytest.mark.luckrate(SPEC)\ndef test_it():\n    agent("look")\n', "--luckrate-report", "r.json")
    assert result.ret == 0
    report = json.loads((pytester.path / "r.json").read_text("utf-8"))
    assert list(report) == ["runs", "luck_rate", "gate"]
    assert report["runs"][0]["verdict"] == "pass"
    assert report["runs"][0]["steps"][0]["result"] is None


def test_without_the_marker_nothing_happens_and_nothing_is_loaded(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makepyfile(
        "import sys\ndef test_it():\n    assert not {'opentelemetry', 'luckrate_otel.sdk'} & set(sys.modules)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2] / "src"))
    result = pytester.runpytest_subprocess(
        "-p", "no:luckrate_otel", "-p", "luckrate_otel.pytest_plugin", "-p", "no:randomly", "-p", "no:hypothesispytest"
    )
    result.assert_outcomes(passed=1)
    assert "Luck Rate" not in result.stdout.str()


def test_the_marker_is_described(run: Any) -> None:
    result = run("", "--markers", "--strict-markers")
    assert any(line.startswith("@pytest.mark.luckrate(spec, runs=1, case=None): grade") for line in result.outlines)


# ---- several processes ---------------------------------------------------------------------------

SEVERAL = """
@pytest.mark.luckrate(SPEC, runs=4)
def test_slow():
    agent("look", "look", "look")

@pytest.mark.luckrate(SPEC, runs=3)
def test_mixed(request):
    agent("pay" if "run1" in request.node.name else "look")

@pytest.mark.luckrate(SPEC, case="half \\ud800 a pair")
def test_odd():
    agent("look")
"""


def test_workers_of_xdist_tell_the_same(run: Any, pytester: pytest.Pytester) -> None:
    """Cases, verdicts, findings, number and gate; only the order is that in which tests end."""
    told = []
    for options in (("-n", "2"), ("-n", "0")):
        path = pytester.path / f"{options[1]}.json"
        result = run(SEVERAL, "--luckrate-report", str(path), *options)
        result.assert_outcomes(passed=7, failed=1)
        assert result.ret == 1
        report = json.loads(path.read_text("utf-8"))
        runs = sorted(
            (one["case"], one["verdict"], [v["fingerprint"] for v in one["violations"]]) for one in report["runs"]
        )
        told.append((runs, report["luck_rate"], report["gate"], sorted(summary(result))))
    workers, alone = told
    assert workers == alone
    assert len(workers[0]) == 8
    assert workers[2]["reasons"] == [
        "hard: 1 violation in 1 of 8 runs (forbidden 1)",
        f"soft: violations in 4 of 4 runs of case {Path(pytester.path).name.rstrip('0')}.py::test_slow",
    ]
