"""Spec files: YAML, JSON, TOML or Python → the mapping that `Spec.from_mapping` reads, with the line of each part.

A Python file is run, so it is loaded only from a path that the operator names, never from one found in data.
"""

from __future__ import annotations

import ast
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from luckrate_otel.document import READERS, Document, read_text
from luckrate_otel.errors import LuckrateError, Problem, SpecError
from luckrate_otel.paths import given_twice, join_path
from luckrate_otel.spec import Spec

# The name a Python spec file must define.
PYTHON_NAME = "SPEC"


@dataclass(frozen=True, slots=True)
class SpecFile:
    """A spec and where it is written. lines: path of a part (`before[1]`) → 1-based line."""

    spec: Spec
    source: str
    lines: Mapping[str, int]

    @property
    def warnings(self) -> tuple[str, ...]:
        """One line each, of what the spec writes that has no effect."""
        return tuple(f"{self.source}: {warning}" for warning in self.spec.warnings)


def load_specs(paths: Sequence[Path]) -> tuple[Spec, ...]:
    """All specs, in the order given. Raises SpecError with the problems of every file, not just the first."""
    return tuple(file.spec for file in load_spec_files(paths))


def load_spec_files(paths: Sequence[Path]) -> tuple[SpecFile, ...]:
    """As load_specs, with the places."""
    files: list[SpecFile] = []
    failed: list[SpecError] = []
    for path in paths:
        try:
            files.append(load_spec_file(path))
        except SpecError as error:
            failed.append(error)
    if len(failed) == 1:
        raise failed[0]
    if failed:
        raise SpecError([Problem("", line) for error in failed for line in str(error).splitlines()])
    return tuple(files)


def load_spec(path: Path) -> Spec:
    """One spec. Raises SpecError that names the file, and the line of each problem where it is known."""
    return load_spec_file(path).spec


def load_spec_file(path: Path) -> SpecFile:
    """As load_spec, with the places."""
    document = read_spec(path)
    if document.problems:
        raise SpecError(document.problems, document.source)
    if isinstance(document.value, Spec):
        return SpecFile(document.value, document.source, document.lines)
    value = {} if document.value is None else document.value
    if not isinstance(value, Mapping):
        raise SpecError(
            [Problem("", "a spec is a mapping of rules; this file holds something else", 1)], document.source
        )
    spec = Spec.from_mapping(value, source=document.source, lines=document.lines)
    return SpecFile(spec, document.source, document.lines)


def read_spec(path: Path) -> Document:
    """The file's values, not yet checked as a spec."""
    source = str(path)
    suffix = path.suffix.lower()
    text, problem = read_text(path)
    if problem is None and suffix != ".py" and suffix not in READERS:
        problem = Problem("", f"not a spec file: its name must end in {', '.join(READERS)} or .py")
    if problem is not None:
        return Document(None, source, problems=(problem,))
    if suffix == ".py":
        return _run_python(text, source)
    return READERS[suffix](text, source)


# ---- Python ------------------------------------------------------------------------------------


def _run_python(text: str, source: str) -> Document:
    try:
        tree = ast.parse(text, source)
        code = compile(tree, source, "exec")
    except (SyntaxError, ValueError) as error:
        line = error.lineno if isinstance(error, SyntaxError) else None
        words = error.msg if isinstance(error, SyntaxError) else str(error)
        return Document(None, source, problems=(Problem("", f"not valid Python: {words}", line),))
    names: dict[str, Any] = {"__name__": "luckrate_spec", "__file__": source}
    try:
        exec(code, names)  # noqa: S102 - the operator named this file to be run
    except SpecError as error:
        line = _own_line(error, source)
        told = tuple(Problem(problem.path, problem.message, line) for problem in error.problems)
        return Document(None, source, problems=told)
    except LuckrateError as error:
        return Document(None, source, problems=(Problem("", str(error), _own_line(error, source)),))
    except Exception as error:  # noqa: BLE001 - whatever an operator's file raises is that file's problem
        words = f"raised {type(error).__name__}: {error}".rstrip(": ")
        return Document(None, source, problems=(Problem("", words, _own_line(error, source)),))
    except SystemExit as error:
        words = f"calls sys.exit(); a spec file only defines {PYTHON_NAME}"
        return Document(None, source, problems=(Problem("", words, _own_line(error, source)),))
    if PYTHON_NAME not in names:
        return Document(
            None, source, problems=(Problem("", f"defines no {PYTHON_NAME}; write {PYTHON_NAME} = {{...}}"),)
        )
    lines, problems = _python_lines(tree)
    return Document(names[PYTHON_NAME], source, lines, tuple(problems))


def _own_line(error: BaseException, source: str) -> int | None:
    """The last line of the file itself that the error passed through, not one of a library it called."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == source]
    return lines[-1] if lines else None


def _python_lines(tree: ast.Module) -> tuple[dict[str, int], list[Problem]]:
    """As json_lines: Python itself takes the last of two keys without a word."""
    lines: dict[str, int] = {}
    problems: list[Problem] = []
    for statement in tree.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        if any(isinstance(target, ast.Name) and target.id == PYTHON_NAME for target in targets):
            assert isinstance(statement, ast.Assign | ast.AnnAssign)
            if statement.value is not None:
                _note_lines(statement.value, "", lines, problems)
    return lines, problems


def _note_lines(node: ast.expr, path: str, lines: dict[str, int], problems: list[Problem]) -> None:
    lines.setdefault(path, node.lineno)
    if isinstance(node, ast.Dict):
        seen: dict[str, int] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                child = join_path(path, key.value)
                if key.value in seen:
                    problems.append(given_twice(child, seen[key.value], key.lineno))
                seen.setdefault(key.value, key.lineno)
                lines[child] = key.lineno
                _note_lines(value, child, lines, problems)
    elif isinstance(node, ast.List | ast.Tuple | ast.Set):
        for index, item in enumerate(node.elts):
            _note_lines(item, join_path(path, index), lines, problems)
