"""What the fault tests measured: noted by them where LUCKRATE_FIGURES says, and written into docs/reliability.md.

python -m tests.faults.figures FIGURES
"""

from __future__ import annotations

import json
import os
import platform
import re
import sys
from collections.abc import Iterable
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs/reliability.md"
END = "<!-- end of figures -->"


def note(fault: str, **figures: float) -> None:
    """One line of JSON for one fault."""
    path = os.environ.get("LUCKRATE_FIGURES")
    if path:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps({"fault": fault, **figures}) + "\n")


def table(lines: Iterable[str]) -> str:
    """The last figures of each fault, in the order the faults first came."""
    rows: dict[str, dict[str, float]] = {}
    for line in lines:
        figures = json.loads(line)
        rows[figures.pop("fault")] = figures
    told = [
        f"| {fault} | {', '.join(f'{_words(name)} {value:,}' for name, value in figures.items())} |"
        for fault, figures in rows.items()
    ]
    return "\n".join([f"Measured on {machine()}.", "", "| fault | figures |", "| --- | --- |", *told])


def machine() -> str:
    return f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.machine()}"


def _words(name: str) -> str:
    return name.replace("_", " ")


def write(command: str, text: str, page: Path = PAGE) -> None:
    """Put a command's figures in their place on the page. ValueError if it has none for them."""
    begin = f"<!-- figures: {command} -->"
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(END)}", re.DOTALL)
    written, times = pattern.subn(lambda _: f"{begin}\n{text}\n{END}", page.read_text(encoding="utf-8"))
    if times != 1:
        raise ValueError(f"{page} has {times} places for the figures of {command}")
    page.write_text(written, encoding="utf-8")


def main() -> None:
    write("make soak", table(Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()))


if __name__ == "__main__":
    main()
