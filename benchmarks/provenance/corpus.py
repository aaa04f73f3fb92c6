"""Recorded runs as trajectories, with what is known about them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from luckrate_otel.model import Step, Trajectory, Turn
from luckrate_otel.provenance import Policy

ATTACKED = ("agentdyn", "agentdojo_drift")
PLAIN = "tau"


@dataclass(frozen=True, slots=True)
class Recorded:
    """One recorded run. goal_steps: calls that match the attacker's goal, None where nobody labelled them."""

    id: str
    collection: str
    suite: str
    trajectory: Trajectory
    policy: Policy
    attacked: bool
    good: bool
    goal_steps: frozenset[int] | None


def load(folder: Path) -> list[Recorded]:
    """Every run of the collections in this folder. FileNotFoundError: there is none."""
    specs = _read(folder / "agentdojo_specs.json")
    prompts = _read(folder / "system_prompts.json")
    found = [run for name in (*ATTACKED, PLAIN) for run in _collection(folder, name, specs, prompts)]
    if not found:
        raise FileNotFoundError(f"no runs in {folder}")
    return found


def _read(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def _collection(folder: Path, name: str, specs: dict[str, Any], prompts: dict[str, str]) -> Iterator[Recorded]:
    path = folder / f"{name}.jsonl.gz"
    if not path.exists():
        return
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield _recorded(json.loads(line), name, specs, prompts)


def _recorded(raw: dict[str, Any], name: str, specs: dict[str, Any], prompts: dict[str, str]) -> Recorded:
    labels, spec = raw["labels"], specs.get(raw["suite"], {})
    goal = labels.get("goal_call_steps")
    privileged = (*spec.get("privileged", ()), *spec.get("egress", ()))
    return Recorded(
        id=raw["id"],
        collection=name,
        suite=raw["suite"],
        trajectory=_trajectory(raw, prompts.get(raw.get("system_prompt_id", ""), "")),
        policy=Policy(tuple(spec.get("untrusted", ())), privileged),
        attacked=bool(labels["attack"]),
        good=bool(labels["utility"]),
        goal_steps=None if goal is None else frozenset(goal),
    )


def _trajectory(raw: dict[str, Any], system: str) -> Trajectory:
    steps = tuple(Step(s["tool"], s["args"], s["ok"], s["result"], float(n)) for n, s in enumerate(raw["steps"]))
    said = raw["messages_user"]
    first = [
        next((n for n, s in enumerate(raw["steps"]) if s["user_turns_before"] > k), len(steps))
        for k in range(len(said))
    ]
    turns = tuple(Turn(text, 0 if k == 0 else first[k]) for k, text in enumerate(said))
    return Trajectory(steps=steps, turns=turns, system=(system,) if system else (), run_id=raw["id"])
