"""Results: one row per run, kept in memory and, if asked for, in a file that a later call resumes from."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from luckrate_otel.gate import gate
from luckrate_otel.luck import luck_rate
from luckrate_otel.model import Verdict
from luckrate_otel.telemetry import nothing
from luckrate_otel.verdict_json import from_record, to_record

FAILED_RULE = "run_failed"


@dataclass(frozen=True, slots=True)
class Row:
    """One run of one case. run: 0-based. seconds: of the runner's call. told: the run as the JSON report shows it,
    without arguments, results and texts."""

    case: str
    run: int
    verdict: Verdict
    told: Mapping[str, Any] = field(default_factory=nothing)
    seconds: float = 0.0

    @property
    def tools(self) -> tuple[str, ...]:
        """Of its steps, in order."""
        return tuple(str(step["tool"]) for step in self.told.get("steps", ()))

    @property
    def failed(self) -> bool:
        """The runner, or `expect`, raised."""
        return any(violation.rule == FAILED_RULE for violation in self.verdict.violations)


class Rows(list[Row]):
    """Rows by case and run. planned: how many there were to be; fewer are left when the suite was interrupted."""

    def __init__(self, rows: Iterable[Row] = (), planned: int | None = None) -> None:
        super().__init__(rows)
        self.planned = len(self) if planned is None else planned

    @property
    def complete(self) -> bool:
        return len(self) >= self.planned

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """For `gate` and `luck_rate`."""
        return tuple(row.verdict for row in self)

    @property
    def names(self) -> Mapping[str, str]:
        """For `gate`: what a suite calls its cases is no text of a task."""
        return {row.case: row.case for row in self}

    def to_json(self) -> dict[str, Any]:
        """The JSON report of `check`, for `compare` and `--baseline`."""
        decision = gate(self.verdicts, names=self.names)
        return {
            "runs": [dict(row.told) for row in self],
            "luck_rate": luck_rate(self.verdicts).to_json(),
            "gate": {"failed": decision.failed, "reasons": list(decision.reasons)},
        }


class Store:
    """A JSONL file of rows: read at the start, appended to as runs finish.

    No argument, result or output is in it; a finding's words name tools and paths.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: TextIO | None = None

    def read(self) -> dict[tuple[str, int, str], Row]:
        """Rows by case, run and the case's fingerprint. Lines that no row can be read of are passed over: the process
        may have been killed while it wrote."""
        if not self._path.exists():
            return {}
        found = {}
        for line in self._path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                record = json.loads(line)
                row = _row(record)
                found[row.case, row.run, str(record["fingerprint"])] = row
            except (ValueError, KeyError, TypeError, AttributeError):
                continue
        return found

    def append(self, row: Row, fingerprint: str) -> None:
        """Written at once, so that a kill loses nothing that was done. OSError if it cannot be."""
        if self._file is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            torn = self._path.exists() and not self._path.read_bytes().endswith(b"\n") and self._path.stat().st_size
            self._file = self._path.open("a", encoding="utf-8")
            if torn:
                self._file.write("\n")
        record = {
            "case": row.case,
            "run": row.run,
            "fingerprint": fingerprint,
            "seconds": round(row.seconds, 6),
            "verdict": to_record(row.verdict),
            "told": dict(row.told),
        }
        self._file.write(json.dumps(record) + "\n")
        self._file.flush()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def _row(record: Mapping[str, Any]) -> Row:
    return Row(
        case=str(record["case"]),
        run=int(record["run"]),
        verdict=from_record(record["verdict"]),
        told=dict(record["told"]),
        seconds=float(record["seconds"]),
    )
