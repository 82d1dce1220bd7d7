"""The words of the gate. Imports nothing: the command line needs them before any work is done."""

from __future__ import annotations

from collections.abc import Mapping

# From the worst to the best; each outcome belongs to one, a comparison to the worst of its outcomes.
CLASSES: Mapping[str, str] = {
    "wrong": "a claim is refuted that was not, or a kernel fails on the device that did not",
    "weaker": "a claim is undecided that was proved or agreed",
    "broken": "a kernel no longer imports, builds, lowers, compiles or runs",
    "slower-risk": "the kernel asks for more work than before, or takes much longer to lower",
    "changed": "the kernel differs in another way",
    "fixed": "a claim is right, or a kernel lowers or passes on the device, that did not",
    "fails-in-both": "a kernel fails with both toolchains",
    "same": "no difference was found",
}
DEFAULT_FAILING = ("wrong", "weaker", "broken")
SAME, FAILS_IN_BOTH = "same", "fails-in-both"
