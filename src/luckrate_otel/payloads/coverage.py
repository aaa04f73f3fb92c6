"""What a payload carried at all."""

from __future__ import annotations

from collections.abc import Sequence

from luckrate_otel.model import Coverage, Step


def covered(steps: Sequence[Step], *, task_input: bool, final_output: bool, tools: bool = True) -> Coverage:
    """Coverage by what the steps hold; without a step there was nothing to carry."""
    return Coverage(
        tools=tools,
        args=not steps or any(step.args is not None for step in steps),
        results=not steps or any(step.result is not None for step in steps),
        task_input=task_input,
        final_output=final_output,
    )
