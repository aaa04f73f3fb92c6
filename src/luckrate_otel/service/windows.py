"""The last k runs of each case, live: whether most of them have a soft violation, as the gate would ask.

Informative: a window belongs to one process, and a restart begins anew. The gate itself looks at whole batches.
"""

from __future__ import annotations

from collections import OrderedDict

from luckrate_otel.gate import case_id
from luckrate_otel.model import Severity, Verdict
from luckrate_otel.record import record

# Cases kept at once; where a case is the text of a task every run may be one of its own. About 1 kB each with k = 5.
MAX_CASES = 10_000

_Key = tuple[str, str]  # spec name, case by its hash


@record(frozen=True, slots=True)
class Window:
    """What a case's last runs look like. runs: at most k. soft: those of them with a soft violation."""

    case: str
    runs: int
    soft: int

    @property
    def failed(self) -> bool:
        """Most of them, by the gate's own rule."""
        return self.soft * 2 > self.runs


class Windows:
    """Rolling windows by spec and case, the cases seen longest ago dropped first."""

    def __init__(self, max_cases: int = MAX_CASES) -> None:
        self._max_cases = max_cases
        self._cases: OrderedDict[_Key, OrderedDict[str, bool]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._cases)

    def add(self, run_id: str, verdict: Verdict, k: int) -> Window:
        """Count a graded run; a run that is known already is judged anew in its old place."""
        key = (verdict.spec or "", case_id(verdict.case))
        runs = self._cases.setdefault(key, OrderedDict())
        self._cases.move_to_end(key)
        runs[run_id] = any(violation.severity is Severity.SOFT for violation in verdict.violations)
        while len(runs) > k:
            runs.popitem(last=False)
        while len(self._cases) > self._max_cases:
            self._cases.popitem(last=False)
        return Window(key[1], len(runs), sum(runs.values()))
