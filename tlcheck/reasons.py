"""Define why a claim is undecided: every reason with its code, what it means and what to do.

A new reason is one more entry at the end of this table. A code keeps its meaning and is never given twice.

python -m tlcheck.reasons docs/reasons.md    writes the page
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ReasonKind:
    """One kind of reason.

    code: `U001`. name: for people and for `tlcheck explain`. title: one line. meaning: what tlcheck saw, and why that
    decides nothing. advice: what to do. words: how a text is told, with `{}` in its place.
    """

    code: str
    name: str
    title: str
    meaning: str
    advice: str
    words: str = "{}"

    @property
    def markdown(self) -> str:
        """The page that `tlcheck explain` shows."""
        body = f"{self.meaning}\n\nWhat to do: {self.advice}"
        return f"# {self.code}: {self.title}\n\n`{self.name}`\n\n{body}\n"


class Reason(str):
    """The reason why something is undecided: a text of one kind. It is equal to the same text."""

    __slots__ = ("kind",)
    kind: ReasonKind

    def __new__(cls, kind: ReasonKind, text: str) -> Reason:
        made = super().__new__(cls, text)
        made.kind = kind
        return made

    def __getnewargs__(self) -> tuple[ReasonKind, str]:  # type: ignore[override]
        return self.kind, str(self)

    @property
    def code(self) -> str:
        return self.kind.code


# What is not modelled.
NOT_MODELLED = ReasonKind(
    "U001",
    "not-modelled",
    "an instruction, operator or form is not modelled",
    "The kernel uses something whose effect tlcheck does not know: an instruction, a tile operator, a dtype, or one of "
    "them with arguments that it has never seen. It stops there and does not guess.",
    "report it with the snapshot (`tlcheck check CASE --save DIR`), or teach it: docs/extending.md says how an "
    "operator or instruction is added. Until then `tlcheck run CASE` compares the kernel with its reference on a GPU.",
    "{} is not modelled",
)
TARGET = ReasonKind(
    "U002",
    "target-not-modelled",
    "the machine is not modelled",
    "The kernel was lowered for an arch whose instructions tlcheck does not execute.",
    "check the kernel for an arch that is modelled (`--arch`, see docs/check.md); the source is the same there.",
)
ENTANGLED = ReasonKind(
    "U003",
    "divergent-waits",
    "threads wait for each other in a divergent branch",
    "Threads of one branch wait for each other while others of the same branch wait only because these do. tlcheck "
    "moves the threads of a branch together and cannot tell who of them could go on.",
    "move the wait out of the branch, or make the branch uniform in each warp.",
)
SOURCE_UNCLEAR = ReasonKind(
    "U004",
    "source-unclear",
    "the source has no single meaning",
    "A value that the source uses for a whole block differs between its threads, such as the place of a tile or the "
    "extent of a T.Parallel. There is nothing that the lowered kernel could be compared with.",
    "compute the value from block indices and arguments alone.",
)

# What was too much.
TIME = ReasonKind(
    "U005",
    "time-limit",
    "executing took longer than allowed",
    "The seconds that one kernel may be executed for ran out before its blocks came to an end. The result is not kept: "
    "another run may get further.",
    "run fewer blocks (`--blocks 1 --seeds 1`), or check a case with smaller sizes.",
    "the allowed {} is spent",
)
STATEMENTS = ReasonKind(
    "U006",
    "statement-limit",
    "the kernel executes more statements than allowed",
    "The blocks that were chosen take more statements than tlcheck executes for one kernel.",
    "allow more (`--budget N`), run fewer blocks (`--blocks 1 --seeds 1`), or check a case with smaller sizes.",
)
BYTES = ReasonKind(
    "U007",
    "memory-limit",
    "the kernel uses more memory than allowed",
    "The tensors and the memory of the blocks that run take more bytes than tlcheck gives to one kernel.",
    "check a case with smaller sizes, or allow more (`--budget N,BYTES`).",
)
OUT_OF_MEMORY = ReasonKind(
    "U008",
    "out-of-memory",
    "this machine has too little memory",
    "Executing the kernel asked for more memory than the machine has. The result is not kept: another machine may get "
    "further.",
    "check fewer kernels at a time (`--jobs 1`), or a case with smaller sizes.",
    "this machine's {} is spent",
)
ENDLESS = ReasonKind(
    "U009",
    "endless-loop",
    "a loop does not end on the inputs that were tried",
    "A loop waits for a value in memory that never comes on these inputs. It may wait for a block that does not run, "
    "such as for a flag of its neighbour.",
    "declare `inputs` in the case with values for which the loop ends.",
)
GRID = ReasonKind(
    "U010",
    "too-many-blocks",
    "more blocks have to run at once than can",
    "Blocks of this kernel wait for each other, so that all of them have to run together, and there are too many.",
    "check a case with a smaller grid.",
)
NESTED = ReasonKind(
    "U011",
    "nested-too-deeply",
    "expressions or statements are nested too deeply",
    "The kernel's TIR has more levels than tlcheck follows.",
    "unroll less, or split the expression; if the kernel is an ordinary one, report it with its snapshot.",
)

# What is missing.
INCOMPLETE = ReasonKind(
    "U012",
    "incomplete-snapshot",
    "the snapshot does not have everything that is compared",
    "The source or the lowered kernel is missing: the snapshot was saved by an older tlcheck, or lowering stopped.",
    "check the kernel file itself, or save the snapshot anew.",
)
SIZES = ReasonKind(
    "U013",
    "no-sizes",
    "no sizes were found that keep what the kernel assumes",
    "The kernel has symbolic sizes and promises something of them (T.assume). None of the sizes that tlcheck tried "
    "keeps the promise.",
    "declare `inputs` in the case: their shapes are the sizes.",
)
INPUTS = ReasonKind(
    "U014",
    "unusable-inputs",
    "the case's inputs cannot be used",
    "The case makes inputs of a dtype of which one byte has several elements, and tlcheck does not unpack them.",
    "leave out `inputs`, so that tlcheck draws them, if the kernel does not depend on special values.",
)
NO_BLOCKS = ReasonKind(
    "U015",
    "no-blocks",
    "the grid has no blocks",
    "With the sizes of this case the kernel is launched with a grid of 0 blocks: nothing runs.",
    "check a case with larger sizes, or declare `inputs` whose shapes give some.",
)
UNWRITTEN = ReasonKind(
    "U016",
    "output-not-written",
    "the blocks that ran write none of the output",
    "On these inputs no block that was executed writes an element of the output, so that there was nothing to compare. "
    "Usually drawn indices or lengths lead past the work.",
    "run all blocks (`--blocks all`), or declare `inputs` in the case with indices that lead somewhere.",
)

# What the source does not define.
SOURCE_STOPS = ReasonKind(
    "U017",
    "source-stops",
    "the source itself cannot run to its end",
    "The source does something that the machine forbids, on inputs that tlcheck drew: an index out of bounds, a wait "
    "that never ends, a promise (T.assume) that does not hold. With your inputs it may be right.",
    "declare `inputs` in the case. If it still stops, it is reported as a bug of the kernel (TLS002, TLS004).",
)
SOURCE_RACE = ReasonKind(
    "U018",
    "source-race",
    "the source races with itself",
    "Two threads, iterations or blocks of the source access one element, and nothing orders them. The output depends "
    "on which comes first, so that no value is the right one. It may depend on inputs that tlcheck drew.",
    "use T.atomic_add, put T.sync_threads() between the accesses, or give each thread an element of its own. If the "
    "indices come from inputs, declare `inputs` in the case: then the race is decided (TLS001).",
)
ATOMICS_ORDER = ReasonKind(
    "U019",
    "ordered-by-atomics",
    "atomics may order what blocks access",
    "Blocks access one element, and atomics of the kernel may order them, as a lock or a counter does. No release "
    "and acquire orders them on the blocks that ran, and none could be ruled out.",
    "check by hand that the atomic acquires and releases; `tlcheck run CASE` compares the outputs on a GPU.",
)
APART = ReasonKind(
    "U020",
    "blocks-apart",
    "the blocks could not run together",
    "Each block was executed by itself, so that accesses of different blocks to one tensor were not seen side by side.",
    "nothing, if the blocks of the kernel do not exchange values; else `tlcheck run CASE` on a GPU.",
)
UNSET = ReasonKind(
    "U021",
    "unset-memory",
    "the output depends on memory that nothing wrote",
    "Most of the output is computed from memory that the source reads before anything has written it. It may depend on "
    "inputs that tlcheck drew.",
    "clear the buffer before it is read (T.clear, T.fill). If indices or lengths come from inputs, declare `inputs` in "
    "the case: then it is decided (TLS003).",
)
ALL_NAN = ReasonKind(
    "U022",
    "all-nan",
    "all of the output is NaN",
    "On these inputs the source computes NaN everywhere, and NaN is equal to NaN whatever was lost.",
    "declare `inputs` in the case for which the output has numbers.",
)
OVERFLOW = ReasonKind(
    "U023",
    "overflow",
    "numbers grow larger than float64 holds",
    "Sums or products of the drawn inputs overflow, and from there on the order of additions decides the value.",
    "declare `inputs` in the case with values of the size that the kernel is made for.",
)
TIE = ReasonKind(
    "U024",
    "tie",
    "rounding decides a discrete choice",
    "A maximum, a comparison or an index depends on numbers that differ by rounding alone. Both sides are right by "
    "their own rounding and choose differently. Before 0.1.11 T.round halfway between two integers is such a choice.",
    "declare `inputs` in the case without ties.",
)
ATOMICS_RETURN = ReasonKind(
    "U025",
    "order-of-atomics",
    "the output depends on the order of atomics",
    "Atomics return what was there, the kernel uses it, and another order of the threads gives other outputs.",
    "compare what does not depend on the order: `outcome` of the case, with a reference, in `tlcheck run`.",
)

# What the lowered kernel does.
LOWERED_STOPS = ReasonKind(
    "U026",
    "lowered-stops",
    "the lowered kernel stops before the output is there",
    "The lowered kernel does something that the machine forbids. That is reported as a finding of its own; nothing is "
    "known of the outputs.",
    "see the finding (TLL001, TLL002).",
)
EARLY_COPIES = ReasonKind(
    "U027",
    "early-copies",
    "the lowered kernel stops when copies land early",
    "With asynchronous copies that land as early as they may, the lowered kernel does something that the machine "
    "forbids.",
    "see the finding (TLL001, TLL002).",
)
DEVICE = ReasonKind(
    "U028",
    "device-differs",
    "the device does not do what was executed",
    "An instruction of the lowered kernel does something else on the device than its TIR says, which is a finding of "
    "its own. The execution followed the TIR, and its agreement says nothing.",
    "see the finding that is named.",
)
CUDA = ReasonKind(
    "U029",
    "cuda-differs",
    "the CUDA that is made of the kernel may compute something else",
    "TileLang's code generation, nvcc or CUTLASS treats an expression of the kernel otherwise than the TIR says, or "
    "refuses it.",
    "cast explicitly, or compute in float32 and convert at the end. A tensor through which threads of a block exchange "
    "values needs T.annotate_restrict_buffers(NAME), which takes `__restrict__` from it.",
)

# What could not be proved.
UNREAD_ATOMIC = ReasonKind(
    "U030",
    "atomic-not-read",
    "an atomic is not understood",
    "The atomic's destination or value is written in a form that tlcheck does not read, or its name is not known.",
    "report it with the snapshot. An execution may still show that the outputs agree.",
)
NO_COUNTERPART = ReasonKind(
    "U031",
    "no-counterpart",
    "an atomic has no counterpart in the lowered kernel",
    "Nothing in the lowered kernel adds to the destination in a way that tlcheck recognizes.",
    "look at the CUDA (`tlcheck dump CASE --at cuda`); if the addition is there, report it with the snapshot.",
)
UNKNOWN_CALL = ReasonKind(
    "U032",
    "unknown-call",
    "a call adds to the destination that is not understood",
    "The lowered kernel passes the destination to a function whose effect tlcheck does not know.",
    "report it with the snapshot.",
)
VALUE_UNREAD = ReasonKind(
    "U033",
    "value-not-read",
    "the value or address of an atomic cannot be followed",
    "The proof follows an atomic's value and address back to tensors and block indices. Here it comes to something "
    "that it does not follow, such as memory that is stored to under another condition.",
    "nothing, if the output agreed: the content was executed. A simpler index or value is proved for all inputs.",
)
OTHER_FORM = ReasonKind(
    "U034",
    "other-form",
    "the lowered additions have another form, and no wrong one was found",
    "The lowered atomic is not equal to the source's by the algebra that tlcheck knows, and no instance was found in "
    "which it adds something else.",
    "nothing, if the output agreed: the additions were executed, for some blocks and inputs.",
)
ENUMERATION = ReasonKind(
    "U035",
    "too-large-to-enumerate",
    "there are too many additions to compare them one by one",
    "The two sides can only be compared addition by addition, and there are more than tlcheck looks at.",
    "check a case with smaller sizes or fewer threads.",
)
ALIGNMENT = ReasonKind(
    "U036",
    "alignment-not-proved",
    "the alignment of an access is not proved",
    "A vector or bulk instruction needs an address of a certain alignment. It depends on a size or on memory that is "
    "known only when the kernel runs.",
    "make the size a constant, or promise it (T.assume).",
)
TIMING = ReasonKind(
    "U037",
    "reads-another-time",
    "an atomic reads memory at another time than in the source",
    "Memory that the atomic's value or address is read from is written in between, and not in the order of the source.",
    "nothing, if the output agreed; else read the value into a register of its own before it is written again.",
)
UNMEASURED = ReasonKind(
    "U038",
    "library-not-measured",
    "it is not measured what a call of the device library does",
    "TileLang's headers differ between releases. The call in question, or these headers, are not in the table of "
    "measurements.",
    "docs/device-library.md says how it is measured; report the release.",
)
NOT_SHOWN = ReasonKind(
    "U039",
    "no-addition-shows-it",
    "instructions differ, and no addition shows a wrong one",
    "A rule is broken by the form of the instructions, but all additions that were compared are right.",
    "look at the CUDA (`tlcheck dump CASE --at cuda`), and report it with the snapshot.",
)

# What tlcheck did not do.
NOT_EXECUTED = ReasonKind(
    "U040",
    "not-executed",
    "nothing of the kernel was executed or proved",
    "The kernel has no atomic, and its outputs were not executed: `--quick`, or `execute = false` in the settings.",
    "leave out `--quick`.",
)
INTERNAL = ReasonKind(
    "U041",
    "internal",
    "tlcheck itself failed",
    "An error in tlcheck ended the judgement of this claim.",
    "report it with the snapshot (`tlcheck check CASE --save DIR`).",
)
EXCHANGE_ORDER = ReasonKind(
    "U042",
    "ordered-by-a-shuffle",
    "only a shuffle separates a read and a write",
    "A shuffle orders a write after a read of the same warp only if the value that is read surely reaches the write "
    "through it.",
    "put T.sync_warp() between them.",
)

_NONE = ReasonKind("", "", "", "", "")
UNSAID = Reason(_NONE, "")  # of what is decided

KINDS = tuple(
    sorted((k for k in list(vars().values()) if isinstance(k, ReasonKind) and k.code), key=lambda kind: kind.code)
)
_BY_CODE = {kind.code: kind for kind in KINDS}


def kind_of_code(code: str) -> ReasonKind | None:
    """The kind of reason with this code; None where no kind has it."""
    return _BY_CODE.get(code)


def told(code: str, text: str) -> str:
    """`U001 cluster_sync is not modelled`: a reason as reports tell it. A code that is unknown is left out."""
    kind = _BY_CODE.get(code)
    return text if kind is None else f"{code} {kind.words.format(text)}"


def page() -> str:
    """All reasons as Markdown."""
    rows = "".join(f"| [{k.code}](#{k.code.lower()}-{k.name}) | `{k.name}` | {k.title} |\n" for k in KINDS)
    parts = "".join(f"\n## {k.code} {k.name}\n\n{k.meaning}\n\nWhat to do: {k.advice}\n" for k in KINDS)
    return (
        "# Reasons for *not decided*\n\n"
        "A claim that tlcheck can neither confirm nor refute is *undecided*. It is not a pass. Each reason has a code; "
        "`tlcheck explain U001` shows what is said here, `tlcheck explain undecided` lists all. Made by `make docs` "
        "from `tlcheck/reasons.py`.\n\n"
        f"| code | name | what is missing |\n|---|---|---|\n{rows}{parts}"
    )


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
