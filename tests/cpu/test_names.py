"""Names that a reader meets once."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "tlcheck"


def test_no_two_classes_have_one_name() -> None:
    places = defaultdict(list)
    for file in PACKAGE.rglob("*.py"):
        for name in re.findall(r"^ *class (\w+)[:(]", file.read_text(), re.MULTILINE):
            places[name].append(str(file.relative_to(PACKAGE)))
    assert not {name: files for name, files in places.items() if len(files) > 1}
    assert len(places) > 300


FOREIGN = {"shared.dyn", "tvm.ir.save_json"}  # a scope, and a function of TVM


def test_what_a_docstring_names_is_in_the_module_or_class_that_it_names() -> None:
    """The last two words of `tlcheck.lower.runs.Lowered` are looked up, where the first of them is one of ours."""
    sources = {file: file.read_text() for file in PACKAGE.rglob("*.py")}
    defined: dict[str, set[str]] = defaultdict(set)
    named = set()
    for file, text in sources.items():
        inside = re.findall(r"^ *(?:def |class )?(\w+)|self\.(\w+)", text, re.MULTILINE)
        words = {word for pair in inside for word in pair}
        for owner in (file.stem, *re.findall(r"^ *class (\w+)", text, re.MULTILINE)):
            defined[owner] |= words
        exported = set(re.findall(r"\w+", text)) if file.name == "__init__.py" else set()
        defined[file.parent.name] |= {file.stem} | exported
        for folder in file.relative_to(PACKAGE).parents[:-1]:
            defined[folder.parent.name or PACKAGE.name].add(folder.name)
        named |= set(re.findall(r"`([a-zA-Z_]\w*(?:\.\w+)+)(?:\(\))?`", text)) - FOREIGN
    pairs = {
        name: name.split(".")[-2:] for name in named if not name.endswith((".json", ".md", ".npy", ".py", ".toml"))
    }
    ours = {name: pair for name, pair in pairs.items() if pair[0] in defined}
    assert len(ours) > 60
    assert [name for name, (owner, last) in ours.items() if last not in defined[owner]] == []
