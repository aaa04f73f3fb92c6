"""Grafana dashboards as code: run it to write the JSON files in grafana/, or with --check to compare them.

Needs grafana-foundation-sdk (examples/requirements-tools.txt). Queries read the metrics that docs/metrics.md lists.

usage: python examples/monitoring/dashboards.py [--check]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from luck_board import luck
from processor_board import processor

FOLDER = Path(__file__).parent / "grafana"


def main() -> int:
    stale = []
    for name, made in (("luckrate.json", luck()), ("luckrate-processor.json", processor())):
        document: Any = json.loads(json.dumps(made.build(), cls=JSONEncoder))
        content = json.dumps(document, indent=2, ensure_ascii=False, sort_keys=True) + "\n"
        file = FOLDER / name
        if "--check" not in sys.argv:
            file.write_text(content, encoding="utf-8")
        elif file.read_text(encoding="utf-8") != content:
            stale.append(name)
    if stale:
        print(f"{', '.join(stale)}: not what dashboards.py makes; run it", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
