"""The short help of each command: its usual options, and examples. An action has examples of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Usage:
    """The short help of a command.

    options: the usual ones; all of them if empty.
    examples: command lines, each with what it does.
    """

    options: tuple[str, ...] = ()
    examples: tuple[tuple[str, str], ...] = ()


_KERNELS = ("--arch", "--toolchain", "--arg")

USAGES: Mapping[str, Usage] = {
    "init": Usage(("--arch", "--force"), (("tlcheck init", "from the tests below this folder"),)),
    "check": Usage(
        (*_KERNELS, "-k", "--why", "--quick", "--format", "--output", "--strict", "--verbose"),
        (
            ("tlcheck check kernels.py::attention --arg heads=64", "one kernel"),
            ("tlcheck check kernels.py:42", "the kernel at a line"),
            ("tlcheck check kernels/ -k 'sparse and not fp8'", "some kernels of a folder"),
            ("tlcheck check tests/test_kernels.py", "the kernels that a test file compiles"),
            ("tlcheck check kernels/ --format html -o report.html", "one page to show"),
        ),
    ),
    "fix": Usage(
        (*_KERNELS, "--format"), (("tlcheck fix kernels.py::attention", "what to change so that it is right"),)
    ),
    "reduce": Usage(
        (*_KERNELS, "--output"), (("tlcheck reduce kernels.py::attention", "the smallest kernel with its finding"),)
    ),
    "report": Usage((*_KERNELS, "--output"), (("tlcheck report kernels.py::attention", "an issue to paste"),)),
    "capture": Usage(
        ("--arch", "--toolchain", "--output", "--live"),
        (
            (
                "tlcheck capture examples/gemm.py -o captured/ -- --m 256",
                "the kernels of a script",
            ),
        ),
    ),
    "dump": Usage(
        (*_KERNELS, "--at", "--every-pass", "--output"),
        (
            ("tlcheck dump kernels.py::attention --at device-tir", "the lowered TIR"),
            ("tlcheck dump kernels.py::attention --at cuda", "the CUDA source"),
        ),
    ),
    "run": Usage(
        (*_KERNELS, "--device", "--exact", "--bench", "--output"),
        (
            ("tlcheck run kernels.py --device cpu", "against the reference, without a GPU"),
            ("tlcheck run kernels.py --bench", "times on this GPU"),
        ),
    ),
    "matrix": Usage(
        ("--toolchains", "--arch", "--show", "--format"),
        (("tlcheck matrix kernels/ --toolchains 0.1.9,0.1.15", "two releases side by side"),),
    ),
    "trace": Usage(
        (*_KERNELS, "--element"),
        (("tlcheck trace kernels.py::attention --element 'dQ[0, 0]'", "where an element comes from"),),
    ),
    "cost": Usage((*_KERNELS, "--compile", "--format"), (("tlcheck cost kernels.py::attention", "access by access"),)),
    "gate": Usage(
        ("--from", "--to", "--arch", "-k", "--fail", "--format", "--output"),
        (
            ("tlcheck gate --from 0.1.14 --to 0.1.15 kernels/", "is this upgrade safe?"),
            ("tlcheck gate --to latest", "the project's release and kernels against the newest"),
        ),
    ),
    "diff": Usage(
        ("--arch", "--arg", "--stat"),
        (("tlcheck diff kernels.py::attention@0.1.14 kernels.py::attention@0.1.15", "what a release changes"),),
    ),
    "layout": Usage(_KERNELS, (("tlcheck layout kernels.py::attention", "the buffers to choose from"),)),
    "bisect": Usage(
        (*_KERNELS, "--from", "--to", "--passes", "--configs"),
        (
            ("tlcheck bisect kernels.py::attention", "since which release is it wrong?"),
            ("tlcheck bisect kernels.py::attention --passes --toolchain 0.1.9", "by which pass?"),
        ),
    ),
    "case": Usage(
        examples=(
            ("tlcheck case kernels.py::attention --arg heads=64", "kernels_cases.py, with a reference to fill in"),
        )
    ),
    "fuzz": Usage(
        ("--time", "--output", "--toolchain", "--arch", "--against"),
        (
            ("tlcheck fuzz --toolchain 0.1.15 --time 8h -o campaign", "a night of made-up kernels"),
            ("tlcheck fuzz kernels/ --against 0.1.14", "what has become wrong since, with kernels like these"),
        ),
    ),
    "golden": Usage(
        examples=(
            ("tlcheck golden update kernels/", "write the lowered code beside what is approved"),
            ("tlcheck golden review", "accept or reject each change"),
            ("tlcheck golden check", "in CI: has something changed that nobody approved?"),
        )
    ),
    "golden check": Usage(
        examples=(
            ("tlcheck golden check", "in CI: has something changed that nobody approved?"),
            ("tlcheck golden check kernels/ --format markdown", "for a comment on a pull request"),
        )
    ),
    "golden update": Usage(
        examples=(
            ("tlcheck golden update kernels/", "write the lowered code beside what is approved"),
            ("tlcheck golden update kernels/ --new-only", "only kernels without an approval"),
        )
    ),
    "golden review": Usage(examples=(("tlcheck golden review", "accept or reject each change"),)),
    "golden accept": Usage(
        examples=(
            ("tlcheck golden accept --reason 'TileLang 0.1.15'", "all that waits"),
            ("tlcheck golden accept kernels.py::attention --reason 'wider tiles'", "one kernel"),
        )
    ),
    "golden reject": Usage(
        examples=(("tlcheck golden reject kernels.py::attention --reason 'a barrier is gone'", "one kernel"),)
    ),
    "golden diff": Usage(examples=(("tlcheck golden diff --base origin/main", "what this branch has approved"),)),
    "golden page": Usage(examples=(("tlcheck golden page -o changes.html", "what differs, to show"),)),
    "explain": Usage(
        examples=(
            ("tlcheck explain TLR001", "a rule"),
            ("tlcheck explain U018", "why something is not decided"),
        )
    ),
    "cache": Usage(examples=(("tlcheck cache info", "where results are, and how large they are"),)),
    "cache info": Usage(examples=(("tlcheck cache info", "where results are, and how large they are"),)),
    "cache clean": Usage(examples=(("tlcheck cache clean", "the next command judges everything anew"),)),
    "toolchain": Usage(
        examples=(
            ("tlcheck toolchain install 0.1.14 0.1.15", "two releases"),
            ("tlcheck toolchain list", "what is installed, and which one is used"),
        )
    ),
    "toolchain install": Usage(
        examples=(
            ("tlcheck toolchain install 0.1.14 0.1.15", "two releases"),
            ("tlcheck toolchain install 0.1.15 --with einops", "with a package that the kernels import"),
        )
    ),
    "toolchain list": Usage(examples=(("tlcheck toolchain list", "what is installed, and which one is used"),)),
    "toolchain remove": Usage(examples=(("tlcheck toolchain remove 0.1.9", "free its disk space"),)),
    "toolchain path": Usage(examples=(("tlcheck toolchain path 0.1.15", "the interpreter, for a script of yours"),)),
    "new": Usage(examples=(("tlcheck new rule TLL009 asleep 'a thread that sleeps'", "a rule and its test"),)),
    "new rule": Usage(examples=(("tlcheck new rule TLL009 asleep 'a thread that sleeps'", "a rule and its test"),)),
    "new instruction": Usage(
        examples=(("tlcheck new instruction ptx_nap --manual 'PTX 9.7.13'", "a handler, a signature and a test"),)
    ),
    "completion": Usage(
        examples=(
            ("tlcheck completion bash > ~/.local/share/bash-completion/completions/tlcheck", "for bash"),
            ("tlcheck completion zsh > ~/.zfunc/_tlcheck", "for zsh, with ~/.zfunc in fpath"),
        )
    ),
}
