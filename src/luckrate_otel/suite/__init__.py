"""Run every case of a suite k times, grade each run, keep the results.

    rows = evaluate(cases, runner, k=5)
    report(rows)
    sys.exit(gate(rows.verdicts).failed)

A case is a mapping: `name`, `input` (what the runner is called with), and optionally `spec` (a Spec, or the mapping it
is made from) and `expect` (output → whether it is right). A runner takes the input and gives (steps, output), or a
coroutine of that; steps are Step values in the order they were issued, or a Trajectory.
"""

from luckrate_otel.suite.case import Case, Runner
from luckrate_otel.suite.evaluate import evaluate
from luckrate_otel.suite.report import report
from luckrate_otel.suite.rows import Row, Rows

__all__ = ["Case", "Row", "Rows", "Runner", "evaluate", "report"]
