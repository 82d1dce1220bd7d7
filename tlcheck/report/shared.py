"""The formats that every command's report can have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TextIO

from tlcheck.report import github, junit, markdown, sarif
from tlcheck.report.notices import Document
from tlcheck.report.outputs import Writer


def writers(document: Callable[[], Document]) -> Mapping[str, Writer]:
    """Format -> what writes the document in it, which is made where one of these formats is wanted."""
    return {
        "markdown": lambda file: put(file, markdown.render(document())),
        "sarif": lambda file: put(file, sarif.render(document())),
        "junit": lambda file: put(file, junit.render(document())),
        "github": lambda file: put(file, github.render(document())),
    }


def put(file: TextIO, text: str) -> None:
    """Write a text, as a function that gives nothing back."""
    file.write(text)
