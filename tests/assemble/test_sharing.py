"""What model calls repeat is kept once, and stays what it was."""

from __future__ import annotations

from dataclasses import replace

import pytest

from luckrate_otel.assemble.sharing import Shared
from luckrate_otel.facts import Call, Facts, Message, Response, Role, Text, ToolDefinition
from tests.making import model


def text(content: str) -> str:
    """A text that is an object of its own, as decoded ones are."""
    return "".join(list(content))


def call(fact: int, *, args: str = "1") -> Facts:
    return model(
        f"{fact:x}",
        inputs=(
            Message("user", (Text(text("look order 1 up")),)),
            Message("assistant", (Call("lookup", {"id": text(args)}, text("call_1")),)),
            Message("tool", (Response(text("call_1"), text("total 200")),)),
        ),
        system=(text("be brief"),),
        definitions=(ToolDefinition(text("lookup"), {"type": "object"}),),
    )


def test_equal_parts_become_one_object_and_facts_stay_equal() -> None:
    shared = Shared()
    first, first_size = shared.share(call(1))
    second, second_size = shared.share(call(2))
    assert (first, second) == (call(1), call(2))
    assert all(a is b for a, b in zip(first.inputs, second.inputs, strict=True))
    assert first.system[0] is second.system[0]
    assert first.definitions is second.definitions
    assert second_size < first_size - 3 * 300


def test_messages_that_differ_only_in_arguments_are_kept_apart() -> None:
    shared = Shared()
    shared.share(call(1))
    other, _ = shared.share(call(2, args="2"))
    assert other == call(2, args="2")


def test_a_tool_span_shares_the_arguments_that_its_model_call_asked_for() -> None:
    shared = Shared()
    asked, _ = shared.share(model("1", outputs=(Message("assistant", (Call("lookup", {"n": 1}, "call_1"),)),)))
    tool = Facts(role=Role.TOOL, adapter="test", head=asked.head, tool="lookup", call_id="call_1", args={"n": 1})
    ran, _ = shared.share(tool)
    part = asked.outputs[0].parts[0]
    assert ran == tool
    assert isinstance(part, Call)
    assert ran.args is part.args


@pytest.mark.parametrize("args", [{"n": 1.0}, {"n": True}, {"n": 2}, {}, None])
def test_arguments_that_are_only_alike_stay_what_they_were(args: dict[str, object] | None) -> None:
    shared = Shared()
    asked, _ = shared.share(model("1", outputs=(Message("assistant", (Call("lookup", {"n": 1}, "call_1"),)),)))
    ran, _ = shared.share(
        Facts(role=Role.TOOL, adapter="test", head=asked.head, tool="lookup", call_id="call_1", args=args)
    )
    assert repr(ran.args) == repr(args)


def test_role_and_text_tell_messages_apart() -> None:
    shared = Shared()
    shared.share(model("1", inputs=(Message("user", (Text("a"),)),)))
    other, _ = shared.share(model("2", inputs=(Message("assistant", (Text("a"),)),)))
    assert other.inputs == (Message("assistant", (Text("a"),)),)


def test_what_cannot_be_shared_is_kept_all_the_same() -> None:
    """More alike messages and more sets of tools than are compared."""
    shared = Shared()
    for i in range(50):
        fact = replace(call(1, args=str(i)), definitions=(ToolDefinition(f"t{i}"),), role=Role.MODEL)
        kept, _ = shared.share(fact)
        assert kept == fact
