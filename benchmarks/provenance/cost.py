"""CPU time of both rules on made-up runs, best of several."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from time import process_time

from luckrate_otel.model import Step, Trajectory, Turn
from luckrate_otel.provenance import Policy
from luckrate_otel.provenance.tokens import TokenEngine

SIZES = (
    ("4 steps, 80-byte results", 4, 80, 200),
    ("10 steps, 300-byte results", 10, 300, 100),
    ("500 steps, 8 kB results", 500, 8000, 3),
)
_ON = Policy(("fetch_page",), ("issue_refund", "send_email"))
_NAMES = ("lookup_order", "fetch_page", "issue_refund", "send_email")


def timings() -> Iterator[tuple[str, float, float]]:
    """(run, milliseconds with taint off, milliseconds with taint on)."""
    for name, steps, size, repeat in SIZES:
        trajectory = _run(steps, size)
        yield name, _best(trajectory, Policy(), repeat), _best(trajectory, _ON, repeat)


def _best(trajectory: Trajectory, policy: Policy, repeat: int) -> float:
    times: list[float] = []
    for _ in range(repeat):
        engine = TokenEngine()
        start = process_time()
        engine.ground(trajectory, policy)
        engine.taint(trajectory, policy)
        times.append(process_time() - start)
    return min(times) * 1000


def _run(steps: int, size: int) -> Trajectory:
    """Orders, refunds and mails; nine values in ten come from the result before, one is made up."""
    random = Random(1)  # noqa: S311 - a repeatable run, no secret
    words = ["".join(random.choices("abcdefghijklmnopqrstuvwxyz", k=random.randint(3, 9))) for _ in range(3000)]
    found: list[Step] = []
    rows = [{"order_id": "ORD-1", "total": 20.5, "email": "first@shop.example"}]
    for number in range(steps):
        row = (
            random.choice(rows)
            if random.random() < 0.9
            else {**rows[0], "order_id": f"X-{random.randint(10**6, 10**7)}"}
        )
        args = (
            {"order_id": row["order_id"]},
            {"url": f"https://shop.example/{random.choice(words)}"},
            {"order_id": row["order_id"], "amount": row["total"]},
            {
                "to": row["email"],
                "subject": " ".join(random.choices(words, k=4)),
                "body": " ".join(random.choices(words, k=40)),
            },
        )[number % 4]
        rows = [_row(random, words, number * 1000)]
        while len(json.dumps(rows)) < size:
            rows.append(_row(random, words, number * 1000 + len(rows)))
        found.append(Step(_NAMES[number % 4], args, True, json.dumps(rows), float(number)))
    return Trajectory(steps=tuple(found), turns=(Turn("Handle order ORD-1 of shop.example, refund 20.50 EUR."),))


def _row(random: Random, words: list[str], number: int) -> dict[str, object]:
    note = " ".join(random.choices(words, k=12))
    email = f"{random.choice(words)}.{random.choice(words)}@{random.choice(words)}.example"
    return {"order_id": f"ORD-{number}", "total": round(random.random() * 1000, 2), "email": email, "note": note}
