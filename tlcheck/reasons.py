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
    "Some threads wait inside a branch, while others have reached its end. On a GPU those might go on, and end the "
    "wait. tlcheck lets the threads of a branch continue only together, so it cannot tell.",
    "move the wait out of the branch, or let all threads of a warp take the same branch.",
)
SOURCE_UNCLEAR = ReasonKind(
    "U004",
    "source-unclear",
    "the source has no single meaning",
    "A value that the source uses for a whole block differs between its threads, such as the place of a tile or the "
    "extent of a T.Parallel. Or only some threads of the block reach a tile operator. So the source defines no result "
    "with which to compare the lowered kernel.",
    "compute the value from block indices and arguments alone; move the operator out of the branch or loop (TLS012).",
)

# What was too much.
TIME = ReasonKind(
    "U005",
    "time-limit",
    "executing took longer than allowed",
    "The time limit for one kernel ran out before its blocks had ended. The result is not kept: another run may get "
    "further.",
    "run fewer blocks (`--blocks 1 --seeds 1`), or check a case with smaller sizes.",
    "the allowed {} is spent",
)
STATEMENTS = ReasonKind(
    "U006",
    "statement-limit",
    "the kernel executes more statements than allowed",
    "The chosen blocks execute more statements than tlcheck allows for one kernel.",
    "allow more (`--budget N`), run fewer blocks (`--blocks 1 --seeds 1`), or check a case with smaller sizes.",
)
BYTES = ReasonKind(
    "U007",
    "memory-limit",
    "the kernel uses more memory than allowed",
    "The tensors, and the memory of the blocks that run, need more bytes than tlcheck allows for one kernel.",
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
    "On these inputs a loop waits for a value in memory that nobody writes. Perhaps a block writes it that tlcheck did "
    "not run, such as a neighbour that sets a flag.",
    "declare `inputs` in the case with values for which the loop ends.",
)
GRID = ReasonKind(
    "U010",
    "too-many-blocks",
    "more blocks have to run at once than can",
    "Blocks of this kernel wait for each other, so all of them have to run together. There are too many for that.",
    "check a case with a smaller grid.",
)
NESTED = ReasonKind(
    "U011",
    "nested-too-deeply",
    "expressions or statements are nested too deeply",
    "Expressions or statements of the kernel's TIR are nested more deeply than tlcheck follows.",
    "unroll less, or split the expression; if the kernel is an ordinary one, report it with its snapshot.",
)

# What is missing.
INCOMPLETE = ReasonKind(
    "U012",
    "incomplete-snapshot",
    "the snapshot does not have everything that is compared",
    "The source or the lowered kernel is missing: the snapshot was saved by an older tlcheck, or lowering stopped.",
    "check the kernel file itself, or save the snapshot again.",
)
SIZES = ReasonKind(
    "U013",
    "no-sizes",
    "no sizes were found that keep what the kernel assumes",
    "The kernel has symbolic sizes and states a condition about them (T.assume). None of the sizes that tlcheck tried "
    "fulfils it.",
    "declare `inputs` in the case: their shapes are the sizes.",
)
INPUTS = ReasonKind(
    "U014",
    "unusable-inputs",
    "the case's inputs cannot be used",
    "The case makes inputs of a dtype with several elements in one byte, and tlcheck does not unpack them.",
    "leave out `inputs`, so that tlcheck draws them, if the kernel does not depend on special values.",
)
NO_BLOCKS = ReasonKind(
    "U015",
    "no-blocks",
    "the grid has no blocks",
    "With the sizes of this case the kernel launches 0 blocks: nothing runs.",
    "check a case with larger sizes, or declare `inputs` with larger shapes.",
)
UNWRITTEN = ReasonKind(
    "U016",
    "output-not-written",
    "the blocks that ran write none of the output",
    "On these inputs no executed block writes an element of the output, so there was nothing to compare. The usual "
    "cause is a random index or length with which the kernel has nothing to do.",
    "run all blocks (`--blocks all`), or declare `inputs` in the case with indices that give the blocks work.",
)

# What the source does not define.
SOURCE_STOPS = ReasonKind(
    "U017",
    "source-stops",
    "the source itself cannot run to its end",
    "On random inputs the source does something that the machine forbids: an index out of bounds, a wait that never "
    "ends, a false T.assume. With your inputs it may be right.",
    "declare `inputs` in the case. If it still stops, it is reported as a bug of the kernel (TLS002, TLS004).",
)
SOURCE_RACE = ReasonKind(
    "U018",
    "source-race",
    "the source races with itself",
    "Two threads, iterations or blocks of the source access one element, and nothing orders them. The output depends "
    "on which comes first, so no value is the right one. The race may come from random inputs.",
    "use T.atomic_add, put T.sync_threads() between the accesses, or give each thread an element of its own. If the "
    "indices come from inputs, declare `inputs` in the case: then the race is decided (TLS001).",
)
ATOMICS_ORDER = ReasonKind(
    "U019",
    "ordered-by-atomics",
    "atomics may order what blocks access",
    "Several blocks access one element. Atomics of the kernel may order these accesses, as a lock or a counter does. "
    "In the blocks that ran, tlcheck found no release and acquire that does, and could not exclude one.",
    "check by hand that the atomic acquires and releases; `tlcheck run CASE` compares the outputs on a GPU.",
)
APART = ReasonKind(
    "U020",
    "blocks-apart",
    "the blocks could not run together",
    "tlcheck executed each block by itself, so it did not see how different blocks access one tensor.",
    "nothing, if the blocks of the kernel do not exchange values; else `tlcheck run CASE` on a GPU.",
)
UNSET = ReasonKind(
    "U021",
    "unset-memory",
    "the output depends on memory that nothing wrote",
    "The source computes most of the output from memory that it reads before anything has written it. The cause may be "
    "random inputs.",
    "clear the buffer before it is read (T.clear, T.fill). If indices or lengths come from inputs, declare `inputs` in "
    "the case: then it is decided (TLS003).",
)
ALL_NAN = ReasonKind(
    "U022",
    "all-nan",
    "all of the output is NaN",
    "On these inputs the source computes NaN everywhere. A lowered kernel that is wrong could give NaN too.",
    "declare `inputs` in the case for which the output holds numbers.",
)
OVERFLOW = ReasonKind(
    "U023",
    "overflow",
    "numbers grow larger than their type holds",
    "Sums or products of the random inputs overflow. From there on the order of additions decides the value of a "
    "float. TileLang simplifies int32 as if it never overflowed: it makes `i + 2` of `(i * 4 + 8) // 4`.",
    "declare `inputs` in the case with values as large as the kernel expects.",
)
TIE = ReasonKind(
    "U024",
    "tie",
    "rounding decides a discrete choice",
    "A maximum, a comparison or an index depends on numbers that differ by rounding alone. Source and lowered kernel "
    "round differently and choose differently, and both are right. Before 0.1.11 T.round of a half is such a choice.",
    "declare `inputs` in the case without ties.",
)
ATOMICS_RETURN = ReasonKind(
    "U025",
    "order-of-atomics",
    "the output depends on the order of atomics",
    "The kernel uses the old values that its atomics return, so another order of the threads gives other outputs.",
    "let the case's `outcome` return what does not depend on the order, and compare it with a reference by `tlcheck "
    "run`.",
)

# What the lowered kernel does.
LOWERED_STOPS = ReasonKind(
    "U026",
    "lowered-stops",
    "the lowered kernel stops before the output is there",
    "The lowered kernel does something that the machine forbids, which is a finding of its own. It stops there, so its "
    "outputs are unknown.",
    "see the finding (TLL001, TLL002).",
)
EARLY_COPIES = ReasonKind(
    "U027",
    "early-copies",
    "the lowered kernel stops when copies land early",
    "When asynchronous copies land as early as possible, the lowered kernel does something that the machine forbids.",
    "see the finding (TLL001, TLL002).",
)
DEVICE = ReasonKind(
    "U028",
    "device-differs",
    "the device does not do what was executed",
    "An instruction of the lowered kernel does something else on the device than its TIR says, which is a finding of "
    "its own. tlcheck executed the TIR, so agreement there says nothing about the device.",
    "see the finding that the reason names.",
)
CUDA = ReasonKind(
    "U029",
    "cuda-differs",
    "the CUDA of the kernel may compute something else",
    "TileLang's code generator, nvcc or CUTLASS computes an expression differently from the TIR, or refuses it.",
    "cast explicitly, or compute in float32 and convert at the end. A tensor through which threads of a block exchange "
    "values needs T.annotate_restrict_buffers(NAME), which removes its `__restrict__`.",
)

# What could not be proved.
UNREAD_ATOMIC = ReasonKind(
    "U030",
    "atomic-not-read",
    "an atomic is not understood",
    "tlcheck does not know the atomic's name, or the form in which its destination or value is written.",
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
    "an unknown call may add to the destination",
    "The lowered kernel passes the destination to a function whose effect tlcheck does not know.",
    "report it with the snapshot.",
)
VALUE_UNREAD = ReasonKind(
    "U033",
    "value-not-read",
    "the value or address of an atomic cannot be followed",
    "The proof follows an atomic's value and address back to tensors and block indices. Here it meets something that "
    "it cannot follow, such as memory that is stored to under another condition.",
    "nothing, if the output agreed: the values were executed. A simpler index or value can be proved for all inputs.",
)
OTHER_FORM = ReasonKind(
    "U034",
    "other-form",
    "the lowered additions have another form, and no wrong one was found",
    "tlcheck's algebra could not show that the lowered atomic equals the source's. It tried concrete blocks and "
    "threads, and found none that adds something else.",
    "nothing, if the output agreed: the additions were executed, for some blocks and inputs.",
)
ENUMERATION = ReasonKind(
    "U035",
    "too-large-to-enumerate",
    "there are too many additions to compare them one by one",
    "Source and lowered kernel can only be compared addition by addition, and there are more additions than the limit.",
    "check a case with smaller sizes or fewer threads.",
)
ALIGNMENT = ReasonKind(
    "U036",
    "alignment-not-proved",
    "the alignment of an access is not proved",
    "A vector or bulk instruction needs an aligned address. Whether it is aligned depends on a size, or on memory, "
    "that is known only when the kernel runs.",
    "make the size a constant, or state its multiple with T.assume.",
)
TIMING = ReasonKind(
    "U037",
    "reads-another-time",
    "an atomic reads memory at another time than in the source",
    "The atomic's value or address is read from memory that the kernel also writes, and the lowered kernel reads and "
    "writes it in another order than the source.",
    "nothing, if the output agreed; else copy the value into a register before its memory is written again.",
)
UNMEASURED = ReasonKind(
    "U038",
    "library-not-measured",
    "nobody has measured what a call of the device library does",
    "TileLang's headers differ between releases. tlcheck's table of measurements lacks this call, or these headers.",
    "measure the release as docs/device-library.md says, or report it.",
)
NOT_SHOWN = ReasonKind(
    "U039",
    "no-addition-shows-it",
    "instructions differ, and no addition shows a wrong one",
    "The instructions break a rule by their form, but all additions that were compared are right.",
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
        "`tlcheck explain U001` shows one, `tlcheck explain undecided` lists all. Made by `make docs` from "
        "`tlcheck/reasons.py`.\n\n"
        f"| code | name | what is missing |\n|---|---|---|\n{rows}{parts}"
    )


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
