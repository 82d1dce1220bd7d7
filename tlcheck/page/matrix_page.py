"""A matrix as a page: sorted, searched, and each cell opens what was found there."""

from __future__ import annotations

from typing import Any

from tlcheck.matrix.cell import Cell
from tlcheck.matrix.table import Matrix, MatrixRow
from tlcheck.matrix.words import column_in_words, figures_in_words, since_in_words, verdict_in_words
from tlcheck.page.html import document
from tlcheck.page.pack import embedded
from tlcheck.page.shown import BAD, GOOD
from tlcheck.verdicts.claim import Claim

_STYLES = ("page.css", "matrix.css")
_SCRIPTS = ("dom.js", "frame.js", "matrix.js")


def matrix_page(found: Matrix) -> str:
    """The page as one HTML file."""
    tone = BAD if found.exit_code else GOOD
    return document("tlcheck matrix", verdict_in_words(found), tone, _BODY, embedded(_data(found)), _STYLES, _SCRIPTS)


def _data(found: Matrix) -> dict[str, Any]:
    return {
        "columns": [{"title": column.title, "counts": column_in_words(found, column)} for column in found.columns],
        "rows": [_row(row) for row in found.rows],
        "notes": found.notes,
    }


def _row(row: MatrixRow) -> dict[str, Any]:
    return {
        "file": row.file,
        "name": row.name,
        "target": row.target,
        "since": since_in_words(row),
        "cells": [_cell(cell) for cell in row.cells],
    }


def _cell(cell: Cell) -> dict[str, Any]:
    failure = cell.failure
    return {
        "state": cell.state,
        "counts": ", ".join(f"{number} {verdict}" for verdict, number in cell.counts.items()),
        "cost": figures_in_words(cell.cost) if cell.cost is not None else "",
        "claims": [_claim(claim) for claim in cell.claims],
        "failure": {"phase": failure.phase, "message": failure.message, "detail": failure.detail} if failure else None,
    }


def _claim(claim: Claim) -> dict[str, Any]:
    found = claim.finding
    return {
        "kind": claim.kind,
        "buffer": claim.buffer,
        "source": claim.source.words,
        "reason": claim.reason,
        "finding": found
        and {
            "rule": f"{found.rule} at {claim.place}",
            "what": found.what,
            "words": found.words,
            "origin": found.origin.words if found.origin is not None else "",
            "found": f"at {found.checkpoint}" + (f", after {found.pass_name}" if found.pass_name else ""),
        },
    }


_BODY = """\
<div id="tools">
<input id="search" type="search" placeholder="search kernels and findings  /" aria-label="search kernels and findings"
 autocomplete="off" spellcheck="false">
<span id="shown" role="status"></span>
</div>
<main id="matrix"><div id="main" tabindex="-1"></div>
<noscript>This page needs JavaScript, which it runs without any network.</noscript></main>
<dialog id="sheet"></dialog>"""
