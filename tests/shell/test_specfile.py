"""Spec files in each form give one and the same spec, and every problem names its file and line."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from luckrate_otel.document import read_json, read_yaml
from luckrate_otel.errors import SpecError
from luckrate_otel.spec import Spec
from luckrate_otel.specfile import load_spec, load_specs

SAME = {
    "a.yaml": "name: refunds\ntools: [look, pay]\nbefore: [[look, pay]]\nmax_steps: 8\n",
    "b.yml": 'name: "refunds"\ntools: &t [look, pay]\nbefore:\n- *t\nmax_steps: 0x8\n',
    "c.json": '{"name": "refunds", "tools": ["look", "pay"],\n\t"before": [["look", "pay"]], "max_steps": 8}',
    "d.toml": 'name = "refunds"\ntools = ["look", "pay"]\nbefore = [["look", "pay"]]\nmax_steps = 8\n',
    "e.py": 'SPEC = dict(name="refunds", tools=["look", "pay"], before=[("look", "pay")], max_steps=8)\n',
}


def load(folder: Path, name: str, text: str) -> Spec:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return load_spec(path)


def problems(folder: Path, name: str, text: str) -> list[str]:
    with pytest.raises(SpecError) as caught:
        load(folder, name, text)
    return [line.removeprefix(f"{folder}/") for line in str(caught.value).splitlines()]


def test_all_forms_give_the_same_spec(tmp_path: Path) -> None:
    specs = [load(tmp_path, name, text) for name, text in SAME.items()]
    assert {spec.name for spec in specs} == {"refunds"}
    assert {spec.version for spec in specs} == {specs[0].version}


def test_a_python_file_may_make_the_spec_itself(tmp_path: Path) -> None:
    text = "from luckrate_otel import Spec\nSPEC = Spec.from_mapping({'name': 'made'})\n"
    assert load(tmp_path, "s.py", text).name == "made"


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "{}"])
def test_an_empty_file_is_the_empty_spec(tmp_path: Path, text: str) -> None:
    assert load(tmp_path, "s.yaml", text).values == {}


PROBLEMS = [
    ("a.yaml", "tools: [look]\nrequired:\n  - look\n  - lok\n", "a.yaml: line 4: required[1]: 'lok' is not one of"),
    ("a.yaml", "forbiden: [x]\n", "a.yaml: line 1: forbiden: unknown key"),
    *(
        ("a.yaml", f"name: x\n{text}\n", f"a.yaml: line {line}: not valid YAML: {words}")
        for text, line, words in (
            ("tools: [a", 2, "a list or mapping in brackets is not closed by ], or lacks a comma"),
            ("tools: [a,\nforbidden: [b]", 2, "a list or mapping in brackets is not closed by ], or lacks a comma"),
            ("match: {agent: a", 2, "a list or mapping in brackets is not closed by }, or lacks a comma"),
            ("tools: [", 3, "a bracket that was opened is not closed"),
            ("match: {agent: 'a\n}", 2, "a quoted text is not closed"),
            ("match: agent: a", 2, "a colon stands where no value can begin; put the text in quotes, or indent"),
            ("tools: [a] b", 2, "does not go on as the lines above began; mend the indentation, or put the text"),
            ("tools:\n  - a\n - b", 4, "does not go on as the lines above began; mend the indentation, or put"),
            ("k 3\nmax_steps: 2", 2, "a key lacks its colon, and a space behind that"),
            ("k:3\nmax_steps: 2", 2, "a key lacks its colon, and a space behind that"),
            ("tools: - a", 2, "no list can begin here; put its - on a line of its own"),
            ("tools: [a,, b]", 2, "a value is missing before ,"),
            ("tools: ]", 2, "a value is missing before ]"),
            ("tools: [a]]", 2, "does not go on as the lines above began"),
            ("tools: [@a]", 2, "no value begins with @; put it in quotes"),
            ("tools: [*a]", 2, "*a stands for what &a marks, which nothing does; put text in quotes"),
            ('tools: ["\\z"]', 2, "while scanning a double-quoted scalar found unknown escape character 'z'"),
        )
    ),
    ("a.yaml", "- a\n", "a.yaml: line 1: a spec is a mapping of rules; this file holds something else"),
    ("a.yaml", "name: a\nname: b\n", "a.yaml: line 2: name: given twice, first in line 1"),
    ("a.json", '{"tools": ["look"],\n "required": ["lok"]}', "a.json: line 2: required[0]: 'lok' is not one of"),
    ("a.yaml", "before:\n\t- [a, b]\n", "a.yaml: line 2: not valid YAML: a tab stands where only spaces may"),
    ("a.yaml", "match:\n  agent: a b\n\tservice: c\n", "a.yaml: line 3: not valid YAML: a tab stands where only"),
    ("a.yaml", "name: a\nmatch: \x00\n", "a.yaml: line 2: not valid YAML: holds the character U+0000"),
    ("a.json", "", "a.json: not valid JSON: the file is empty; write {}"),
    ("a.json", " \n", "a.json: not valid JSON: the file is empty; write {}"),
    ("a.toml", "k = 1\nk = 2\n", "a.toml: line 2: not valid TOML: a key is given twice"),
    ("a.toml", "[args]\n[args]\n", "a.toml: line 2: not valid TOML: the table args is given twice"),
    (
        "a.toml",
        "match = {agent = 'a'}\nmatch.service = 'b'\n",
        "a.toml: line 2: not valid TOML: match is written whole above, and given more keys here",
    ),
    ("a.json", '{"tools": [}', "a.json: line 1: not valid JSON: Expecting value"),
    ("a.json", '{"name":\n "a",}', "a.json: line 2: not valid JSON: "),
    (
        "a.toml",
        'name = "a"\ntools = ["look"]\nrequired = ["lok"]\n',
        "a.toml: line 3: required[0]: 'lok' is not one of",
    ),
    ("a.toml", "name = \n", "a.toml: line 1: not valid TOML: Invalid value"),
    (
        "a.py",
        "SPEC = {\n  'tools': ['look'],\n  'required': ['look',\n  'lok'],\n}\n",
        "a.py: line 4: required[1]: 'lok'",
    ),
    ("a.py", "x = 1\n\nSPEC = {1: 1 / 0}\n", "a.py: line 3: raised ZeroDivisionError: division by zero"),
    ("a.py", "import json\njson.loads('x')\n", "a.py: line 2: raised JSONDecodeError: Expecting value"),
    ("a.py", "def f(:\n", "a.py: line 1: not valid Python: "),
    ("a.py", "spec = {}\n", "a.py: defines no SPEC; write SPEC = {...}"),
    ("a.json", '{"name": "a', "a.json: line 1: not valid JSON: Unterminated string starting"),
    ("a.yaml", f"name: a\nmax_steps: {'9' * 5000}", "a.yaml: line 2: max_steps: a number of too many digits"),
    ("a.json", f'{{"max_steps": {"9" * 5000}}}', "a.json: not usable JSON: a number of too many digits"),
    ("a.toml", f"max_steps = {'9' * 5000}", "a.toml: not usable TOML: a number of too many digits"),
    ("a.yaml", f"tools: {'[' * 100_000}", "a.yaml: not valid YAML: nested too deep"),
    ("a.json", f'{{"tools": {"[" * 100_000}', "a.json: not usable JSON: nested too deep"),
    ("a.toml", f"tools = {'[' * 100_000}", "a.toml: not usable TOML: nested too deep"),
    ("a.py", "import sys\nsys.exit()\n", "a.py: line 2: calls sys.exit(); a spec file only defines SPEC"),
    ("a.py", "raise ValueError('one\\n\\n  two\\n')\n", "a.py: line 1: raised ValueError: one two"),
    ("a.yaml", '"a\\nb": 1\n', "a.yaml: line 1: a b: unknown key"),
    ("a.ini", "", "a.ini: not a spec file: its name must end in .yaml, .yml, .json, .toml or .py"),
]


TWICE = {
    "a.yaml": ("args:\n  pay:\n    from: {id: look}\n    from: {id: user}\n", [(4, "args.pay.from", 3)]),
    "a.json": ('{"args":\n {"pay": {"from": {"id": "look"},\n "from":\n {"id": "user"}}}}', [(3, "args.pay.from", 2)]),
    "b.json": ('{"name": "a", "name": "b"}', [(1, "name", 1)]),
    "c.json": ('{"k": 1,\n"k": 2,\n"k": 3}', [(2, "k", 1), (3, "k", 1)]),
    "d.json": ('{"name": 1,\n\t"n\\u0061me": 2}', [(2, "name", 1)]),
    "e.json": ('{"before": [["{\\"k", "k:"],\r\n {"a": 1, "b": {"a": 2},\r\n"a": 3}]}', [(3, "before[1].a", 2)]),
    "f.json": ('{"\\ud800": 1,\n"\\udfff": 2}', [(2, "\ufffd", 1)]),
    "a.py": ('SPEC = {\n "args": {"pay": {"from": 1,\n "from": 2}}, **{"args": {}}}', [(3, "args.pay.from", 2)]),
    "b.py": ('SPEC: dict = {"k": 1,\n"k": 2,\n"k": 3}', [(2, "k", 1), (3, "k", 1)]),
}  # fmt: skip


@pytest.mark.parametrize("name", TWICE)
def test_a_key_given_twice_is_told_with_both_places(tmp_path: Path, name: str) -> None:
    text, expected = TWICE[name]
    assert problems(tmp_path, name, text) == [
        f"{name}: line {line}: {path}: given twice, first in line {first}" for line, path, first in expected
    ]


@pytest.mark.parametrize("text", ['name = "a"\nname = "b"\n', "match = {a = 1}\n[match]\na = 2\n"])
def test_of_a_toml_key_given_twice_the_second_place_is_told(tmp_path: Path, text: str) -> None:
    """Its reader tells no more."""
    (said,) = problems(tmp_path, "a.toml", text)
    assert re.fullmatch(r"a\.toml: line 2: not valid TOML: (a key|the table match) is given twice", said)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    # YAML takes keys of 1,024 characters at most, in front of their colon; escaped each is six of them.
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=100), inner),
)


@given(JSON, st.sampled_from([None, 1, "\t"]), st.booleans())
@example({"": None}, 1, False)
@example({"": {"": [None, {"": 1}]}, "a": {"": 1}}, 1, False)
def test_every_value_of_a_json_text_has_the_line_that_yaml_finds(
    value: object, indent: int | str | None, ascii_only: bool
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    assume(
        re.search("\\\\ud[89a-f]|[\x7f-\xa0\u2028\u2029\ufeff\ufffe\uffff]", text) is None
    )  # YAML's own lines and limits
    found = read_json(text, "s.json")
    by_yaml = read_yaml(text.expandtabs(), "s.yaml")
    assert (found.value, found.problems) == (value, ())
    assert by_yaml.problems == ()
    assert found.lines == by_yaml.lines


@pytest.mark.parametrize(("name", "text", "message"), PROBLEMS, ids=[f"{row[0]}: {row[2][:40]}" for row in PROBLEMS])
def test_each_problem_names_its_place(tmp_path: Path, name: str, text: str, message: str) -> None:
    assert problems(tmp_path, name, text)[0].startswith(message)


def test_a_spec_made_in_python_tells_every_problem(tmp_path: Path) -> None:
    text = "from luckrate_otel import Spec\n\nSPEC = Spec.from_mapping({'requird': [], 'k': 0})\n"
    assert problems(tmp_path, "a.py", text) == [
        "a.py: line 3: requird: unknown key; did you mean 'required'?",
        "a.py: line 3: k: expected a whole number from 1 on, got 0",
    ]


def test_yaml_is_version_1_2(tmp_path: Path) -> None:
    """`no`, `off` and a date are texts, so a tool may be called that."""
    assert load(tmp_path, "s.yaml", "forbidden: [no, off, y, 2024-01-01, 010x]").values == {
        "forbidden": ("no", "off", "y", "2024-01-01", "010x")
    }


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"none\.yaml: cannot be read: no such file or directory$"):
        load_spec(tmp_path / "none.yaml")


def test_the_problems_of_all_files_are_told(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("a: 1", encoding="utf-8")
    (tmp_path / "b.yaml").write_text("b: 1", encoding="utf-8")
    with pytest.raises(SpecError) as caught:
        load_specs([tmp_path / "a.yaml", tmp_path / "b.yaml"])
    assert [line.split(": unknown")[0] for line in str(caught.value).splitlines()] == [
        f"{tmp_path}/a.yaml: line 1: a",
        f"{tmp_path}/b.yaml: line 1: b",
    ]
