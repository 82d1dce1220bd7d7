"""A report with one of everything, and with texts that no format may take for its own syntax."""

from __future__ import annotations

from tlcheck.report.notices import Document, Notice, Subject

NASTY = "a | b <b>\x1b[31m & \"q\" 'r' `code` @someone % 100, x: y::z ]]> \ud800 end\r\nsecond line"

WRONG = Notice("wrong", "error", "it is wrong", "B: it is wrong", "kernels/k.py", 7, "witness: lane 1")
SLOWER = Notice("slower-risk", "warning", "AtomicAddx4 -> 4 x AtomicAdd", "B: AtomicAddx4 -> 4 x AtomicAdd", "k.py", 3)
CHANGED = Notice("changed", "note", NASTY, NASTY, "k.py", 0, NASTY)
ACCEPTED = Notice("broken", "error", "it fails", "it fails", "k.py", 9, accepted="not deployed")

DOCUMENT = Document(
    "gate",
    "FAIL: 1 wrong",
    (
        Subject("kernels/k.py", "full", "sm_90", (WRONG, SLOWER), 1.5),
        Subject("k.py", "a", "sm_80", (SLOWER, CHANGED)),
        Subject("k.py", "b", "sm_80", (SLOWER, ACCEPTED)),
        Subject("k.py", "naive", "sm_80", skipped="fails with both toolchains"),
    ),
    ("something to know",),
    {"wrong": "an atomic is refuted"},
    failed=True,
)
EMPTY = Document("gate", "PASS: nothing", (Subject("k.py", "a", "sm_80"),))
