"""The agent's own test, graded: it passes when the answer is right and the way there keeps to the spec.

pytest test_agent.py
"""

import pytest
from agent import answer


@pytest.fixture(autouse=True)
def _content(monkeypatch: pytest.MonkeyPatch) -> None:
    """Record arguments and results, as `exec` would have it."""
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "SPAN_ONLY")


@pytest.mark.luckrate("refunds.yaml", runs=3)
def test_refund() -> None:
    assert "refunded order 88213" in answer("Refund order 88213.")
