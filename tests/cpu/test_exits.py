"""Exit codes, and that nobody else has numbers of his own."""

from __future__ import annotations

import ast
import signal
from pathlib import Path

import pytest

from tlcheck import exits

PACKAGE = Path(__file__).parents[2] / "tlcheck"


@pytest.mark.parametrize(
    ("usage", "found", "unchecked", "code"),
    [
        (False, False, False, 0),
        (False, False, True, 3),
        (False, True, False, 1),
        (False, True, True, 1),
        (True, False, True, 2),
        (True, True, True, 2),
    ],
)
def test_the_first_outcome_that_holds_is_the_code(usage: bool, found: bool, unchecked: bool, code: int) -> None:
    assert exits.exit_code(usage=usage, found=found, unchecked=unchecked) == code


def test_signals_end_commands_as_in_a_shell() -> None:
    assert exits.interrupted() == 130
    assert exits.interrupted(signal.SIGTERM) == 143


def given_back(value: ast.expr | None) -> list[ast.expr]:
    """Each of the values that an expression may come to."""
    if isinstance(value, ast.IfExp):
        return [*given_back(value.body), *given_back(value.orelse)]
    return [] if value is None else [value]


def test_no_command_has_numbers_of_its_own() -> None:
    """No function that ends a command returns a number that is written there."""
    named = {"run", "exit_code", "_code", "main", "watch", "review", "without_device"}
    numbers = [
        f"{file.name}:{step.lineno}"
        for folder in ("cli", "gate", "golden", "matrix", "run", "verdicts")
        for file in (PACKAGE / folder).glob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef) and node.name in named
        for step in ast.walk(node)
        if isinstance(step, ast.Return)
        for value in given_back(step.value)
        if isinstance(value, ast.Constant) and type(value.value) is int
    ]
    assert numbers == []
