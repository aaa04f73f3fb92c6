from __future__ import annotations

import luckrate_otel


def test_the_public_names() -> None:
    assert luckrate_otel.__all__ == ["Spec", "Step", "Turn", "check", "gate", "luck_rate"]
    assert all(getattr(luckrate_otel, name) is not None for name in luckrate_otel.__all__)
