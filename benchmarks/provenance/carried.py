"""Recorded attacks as a tool protocol would carry them: results in content blocks, arguments in one JSON text."""

from __future__ import annotations

import json
from dataclasses import replace

from benchmarks.provenance.corpus import Recorded


def carried(run: Recorded) -> Recorded:
    steps = tuple(
        replace(
            step,
            args={"input": json.dumps(step.args)},
            result=json.dumps([{"type": "text", "text": step.result}]) if step.result else step.result,
        )
        for step in run.trajectory.steps
    )
    return replace(run, trajectory=replace(run.trajectory, steps=steps))
