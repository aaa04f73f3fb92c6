"""The comment: whatever comes from telemetry is inert in it."""

import re
from dataclasses import replace

import pytest

from luckrate_otel.model import VerdictLabel
from luckrate_otel.reports.graded import GateOptions, case_label, make_report
from luckrate_otel.reports.markdown import MAX_CASES, MAX_FINDINGS, code, markdown
from tests.reports.example import HARD, RUNS, SOFT, report, run, verdict

LABEL = case_label(*RUNS[0])


def test_the_whole_comment() -> None:
    assert markdown(
        make_report([(run(1), verdict(VerdictLabel.PASS)), (run(2), verdict(VerdictLabel.PASS, SOFT))])
    ) == (
        "### Luck Rate 0 %, gate passed\n"
        "\n"
        "0 lucky of 2 green runs, 95 % interval 0 % to 66 %.\n"
        "\n"
        "2 runs.\n"
        "\n"
        "| case | runs | green | lucky | hard | soft | warn |\n"
        "|---|--:|--:|--:|--:|--:|--:|\n"
        f"| `{LABEL}` | 2 | 2 | 0 | 0 | 1 | 0 |\n"
        "\n"
        "<details><summary>1 finding</summary>\n"
        "\n"
        "| severity | rule | case | runs | where | why | evidence |\n"
        "|---|---|---|--:|---|---|---|\n"
        f"| soft | max_steps | `{LABEL}` | 1 | the run | `max_steps: 2 steps, 1 allowed` | — |\n"
        "\n"
        "- **max_steps**: look for needless calls first; raise the budget only if good runs need more. Silence: "
        "`severity: {max_steps: off} in the spec (or warn: shown, never fails), or accept it with --baseline`\n"
        "\n"
        "</details>\n"
    )


def test_nothing_green() -> None:
    text = markdown(make_report([]))
    assert text.startswith("### Luck Rate —, gate failed\n\nNo run of 0 was green")
    assert "- `no_runs: nothing to judge`" in text


def test_runs_that_were_not_graded_are_counted_by_reason() -> None:
    reasons = ("no_spec", "no_agent", "no_spec", None)
    text = markdown(make_report([(run(n), verdict(VerdictLabel.NOT_GRADED, reason=r)) for n, r in enumerate(reasons)]))
    assert text.splitlines()[4] == "4 runs, 4 not graded (no reason given 1, no_agent 1, no_spec 2)."


def test_what_telemetry_says_is_inert() -> None:
    text = markdown(report())
    assert "s3cret" not in text
    assert "\x1b" not in text
    outside = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", text)
    assert "@all" in text
    assert "@" not in outside
    assert "<b>" not in outside
    rows = [line for line in text.splitlines() if line.startswith("| hard")]
    assert len(re.findall(r"(?<!\\)\|", rows[0])) == 8


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "`plain`"),
        ("a`b", "``a`b``"),
        ("`a``", "``` `a`` ```"),
        ("", "`  `"),
        ("a|b", "`a\\|b`"),
        ("a\nb", "`a\\nb`"),
        ("abcdef", "`abcdef`"),
        ("abcdefg", "`abcde…`"),
    ],
)
def test_code_spans(text: str, shown: str) -> None:
    assert code(text, 6) == shown


def test_known_findings_come_last() -> None:
    text = markdown(report(GateOptions(known=frozenset({(LABEL, HARD.fingerprint)}))))
    severities = re.findall(r"^\| (\w+(?: \(known\))?) \| (?:before|max_steps|ground)", text, re.MULTILINE)
    assert severities == ["soft", "warn", "hard (known)"]
    assert "gate passed" in text


def test_it_is_bounded() -> None:
    runs = [
        (replace(run(n), case=f"c{n}"), replace(verdict(VerdictLabel.LUCKY, HARD), case=f"c{n}")) for n in range(200)
    ]
    text = markdown(make_report(runs))
    assert len(text) < 65_536
    assert text.count("| hard |") == 1 + MAX_FINDINGS
    assert f"… and {200 - MAX_FINDINGS} more; " in text
    assert f"… and {200 - MAX_CASES} more cases." in text
