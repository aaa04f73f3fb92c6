"""Building n8n executions for the tests of this folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

CAPTURED = Path(__file__).parent / "captured"

AGENT = {"name": "Agent", "type": "@n8n/n8n-nodes-langchain.agent", "parameters": {}}


def captured(name: str) -> Any:
    return json.loads((CAPTURED / name).read_text())


def tool_run(args: Any, result: Any = None, **fields: Any) -> dict[str, Any]:
    """A stored run of a tool node, called by "Agent"; result: its output item's json."""
    data = {} if result is None else {"data": {"ai_tool": [[{"json": result}]]}}
    entry = {
        "startTime": 1000,
        "executionTime": 5,
        "executionStatus": "success",
        "source": [{"previousNode": "Agent"}],
        "inputOverride": {"ai_tool": [[{"json": args}]]},
        **data,
    }
    return {**entry, **fields}


def agent_run(output: Any = "done", **fields: Any) -> dict[str, Any]:
    entry = {
        "startTime": 2000,
        "executionTime": 5,
        "executionStatus": "success",
        "source": [{"previousNode": "Trigger"}],
        "data": {"main": [[{"json": {"output": output}}]]},
    }
    return {**entry, **fields}


def trigger_run(payload: Any, **fields: Any) -> dict[str, Any]:
    return {
        "startTime": 900,
        "executionStatus": "success",
        "source": [],
        "data": {"main": [[{"json": payload}]]},
        **fields,
    }


def execution(run_data: Any, nodes: Any = (AGENT,), **fields: Any) -> dict[str, Any]:
    return {
        "id": "7",
        "mode": "webhook",
        "status": "success",
        "workflowId": "w",
        "data": {"resultData": {"runData": run_data}},
        "workflowData": {"name": "Shop", "nodes": list(nodes)},
        **fields,
    }
