"""The findings that a campaign recognizes are those of docs/findings.md, each by its own name."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec
import pytest

from tlcheck.fuzz.bench import FuzzBench
from tlcheck.fuzz.campaign import REQUEST
from tlcheck.fuzz.known import known
from tlcheck.fuzz.outcome import Symptom, outcome
from tlcheck.fuzz.relations import relations, remarks
from tlcheck.fuzz.seeds import arguments
from tlcheck.fuzz.traits import TRAITS, traits
from tlcheck.remedy.reduction import bound
from tlcheck.toolchain.resolve import resolve

pytestmark = pytest.mark.xdist_group("tests/cpu/fuzz")  # the kernels are read once

ROOT = Path(__file__).parents[3]
WRONG = ROOT / "tests" / "wrong_code"
KNOWN = msgspec.toml.decode((ROOT / "tlcheck" / "fuzz" / "known.toml").read_text())
EXPECTED = msgspec.toml.decode((WRONG / "expected.toml").read_text())
SENTENCES = (
    "is an int in CUDA", "waits for it in a shuffle", "no multiple of 128 bytes", "of 4 int32 by", "out of bounds",
    "between the write of s at line 1 and the write of s at line 2", "in a later step", "both in a while loop",
    "both in a loop", "a branch apart", "a condition and its branch", "a loop of a block between",
    "both before a pipeline", "between the write of s at line 1 (thread 27) and the read of s at line 2 (thread 0)",
    "what the copy writes", "between the write of s at line 1 and the read of s at line 2",
    "a wait for the copy is missing", "shape [4]", "deadlock: waits at barrier 0 ",
    "of a tile that some steps load", "of 2 bfloat16 by value to float16", "of 1 float32 by value to int64",
    "between the read of workspace at line 1 and the write of h at line 2, which lie in the same memory",
    "of a pipeline with fewer steps than stages", "64 threads reach a barrier that counts 128",
    "between the atomic of s at line 1 and the read of s at line 2",
    "between the read of s at line 1 and the write of t at line 2, which lie in the same memory",
    "256 threads reach a barrier that counts 128", "128 threads reach barrier 3, which counts 64",
    "access of s out of bounds",
)  # fmt: skip


@cache
def kernels() -> dict[str, tuple[str, str]]:
    """Finding -> its function, and the text of its kernel."""
    found = {}
    for file in (WRONG / "kernels.py", WRONG / "repaired.py"):
        text = file.read_text()
        for name, function, given in arguments(ast.parse(text)):
            found[name] = function, bound(text, function, given)
    return found


def test_every_entry_is_a_finding() -> None:
    assert set(KNOWN) == set(EXPECTED)
    for name, archs in EXPECTED.items():
        wrong = {r for found in archs.values() for r, each in found.items() if each["verdict"] == "refuted"}
        assert set(KNOWN[name]["releases"]) == wrong, name


def test_entries_ask_for_traits_that_there_are() -> None:
    asked = {trait for entry in KNOWN.values() for key in ("has", "without") for trait in entry.get(key, ())}
    assert asked <= set(TRAITS)


def test_the_symptoms_of_a_finding_have_its_name() -> None:
    found = kernels()
    for name, entry in KNOWN.items():
        if "0.1.15" in entry["releases"]:
            says = "; ".join(s for s in SENTENCES if any(re.search(each, s) for each in entry.get("says", ())))
            names = [known(Symptom(*each), says, found[name][1], "0.1.15") for each in entry["shows"]]
            assert set(names) == {name}


def test_what_shows_alike_in_another_kernel_is_not_recognized() -> None:
    text = kernels()["scaled"][1]
    early = Symptom("TLO001", "early", "", "store shared in T.Parallel", "T.copy global shared")
    assert known(early, "", text, "0.1.15") == "scaled"
    assert known(early, "", text, "0.1.8") == ""  # which has it right
    assert known(early, "", text.replace("T.gemm(a, b, c)", "T.gemm(b, b, c)"), "0.1.15") == ""
    assert known(Symptom("TLO001", "early", "tl.Simplify", "T.copy shared global"), "", text, "0.1.15") == ""


def test_a_claim_has_to_say_it() -> None:
    text = kernels()["widened"][1]
    shows = Symptom("TLO001", "other-value", "", "store global")
    for words in ("is an int in CUDA", "wraps as written, and not as lowered"):
        assert known(shows, f"C is wrong: uint8 - uint8 {words}", text, "0.1.15") == "widened"
    assert known(shows, "C is wrong", text, "0.1.15") == ""


def test_traits_are_about_order_and_nesting() -> None:
    found = kernels()
    assert {"operand loaded twice", "product in a pipeline"} <= traits(found["reused"][1])
    assert "operand loaded twice" not in traits(found["scaled"][1])
    assert "pipeline in a branch" in traits(found["skipped"][1])
    assert "pipeline in a branch" in traits(found["skipped"][1].replace("T.gemm(", "T.barrier("))
    assert "pipeline in a branch" not in traits(found["nested"][1])
    assert "pipeline in a loop" in traits(found["nested"][1])
    assert "used, then loaded" in traits(found["replaced"][1])
    assert "row variable" in traits(found["moved"][1])
    assert "guarded load" in traits(found["reloaded"][1])


def test_a_store_after_a_load_of_the_same_step_may_be_masked() -> None:
    text = kernels()["masked"][1]
    assert "loaded, then set" in traits(text)
    assert "loaded, then set" not in traits(text.replace("s[i] = 0", "s[i] = s[i] + 1"))
    assert "loaded, then set" not in traits(text.replace("Pipelined(2, num_stages=1)", "serial(2)"))


def test_a_tile_that_a_pipeline_reads_is_like_an_operand() -> None:
    text = kernels()["scaled"][1]
    product = "T.gemm(a, b, c)"
    other = text.replace(product, "T.gemm(b, b, c)")
    assert "operand read before" in traits(text)
    assert "operand read before" not in traits(other)
    line = next(line for line in other.splitlines() if "T.gemm(b" in line)
    copied = line.replace("T.gemm(b, b, c)", "T.copy(a, d)")
    assert "operand read before" in traits(other.replace(line, f"{copied}\n{line}"))


def test_registers_are_kept_over_any_pipeline() -> None:
    text = kernels()["parted"][1]
    product = next(line for line in text.splitlines() if "T.gemm(" in line)
    assert "registers over a pipeline" in traits(text.replace(product, ""))
    assert "registers over a pipeline" not in traits(text.replace("Pipelined(", "Persistent("))


def test_a_statement_reads_a_tile_that_some_steps_load() -> None:
    text = kernels()["reloaded"][1]
    lines = {line.strip(): number for number, line in enumerate(text.splitlines(), 1)}
    load = next(number for line, number in lines.items() if line.startswith("T.copy(A[") and ", a)" in line)
    other = next(number for line, number in lines.items() if line.startswith("T.copy(B["))
    assert remarks(text, load) == ("of a tile that some steps load",)
    assert remarks(text, other) == remarks(text, 1) == ()
    unguarded = text.splitlines()
    unguarded[load - 2] = unguarded[load - 2][: -len(unguarded[load - 2].lstrip())] + "for _ in T.serial(1):"
    assert remarks("\n".join(unguarded), load) == ()


def test_registers_and_conversions_are_told_apart() -> None:
    found = {name: text for name, (_, text) in kernels().items()}
    assert "registers loaded in a pipeline" in traits(found["withheld"]) & traits(found["dropped"])
    assert "registers loaded in a pipeline" not in traits(found["masked"])
    assert "guarded conversion" in traits(found["clobbered"])
    assert "guarded conversion" not in traits(found["clobbered"].replace("if bx < 1", "for _ in range(1)"))


def test_loops_over_part_of_registers_and_copies_by_threads_are_traits() -> None:
    found = {name: text for name, (_, text) in kernels().items()}
    assert "loop over part of registers" in traits(found["loop"])
    assert "loop over part of registers" not in traits(found["loop"].replace("Parallel(100)", "Parallel(256)"))
    assert "loop over part of registers" in traits(found["loop"].replace("f[i] = f[i] + 5", "f[i + 9] = f[i] + 5"))
    assert "loop over part of registers" not in traits(found["loop"].replace("f[i] = f[i] + 5", "f[7 - i] = 5"))
    for part in ("f[0:9]", "f"):
        scan = found["loop"].replace("f[i] = f[i] + 5", f"T.cumsum(src={part}, dst={part}, dim=0)")
        assert ("loop over part of registers" in traits(scan)) == (part != "f")
    copied = "tile that threads copy in a pipeline"
    assert copied in traits(found["released"])
    assert copied not in traits(found["released"].replace("T.copy(B[k, 0], b)", "T.clear(b)"))
    assert copied not in traits(found["released"].replace("a[i] = A[k, i]", "a[i] = A[k, i] + b[i]"))


def test_a_serial_loop_over_registers_is_a_trait() -> None:
    found = {name: text for name, (_, text) in kernels().items()}
    for name in ("walked", "dealt"):
        assert "registers in turn" in traits(found[name])
        assert "registers in turn" not in traits(found[name].replace("T.serial(128)", "T.Parallel(128)"))
        assert "registers in turn" not in traits(found[name].replace("alloc_fragment", "alloc_shared"))


def test_loops_in_a_step_and_loads_before_a_pipeline_are_traits() -> None:
    found = {name: text for name, (_, text) in kernels().items()}
    assert "load in a loop of a step" in traits(found["enclosed"])
    assert "load in a loop of a step" not in traits(found["enclosed"].replace("T.serial(2)", "T.Parallel(2)"))
    assert "pipeline in a pipeline" in traits(found["crossed"])
    assert "pipeline in a pipeline" not in traits(found["crossed"].replace("j in T.Pipelined", "j in T.serial"))
    assert "cleared, then loaded" in traits(found["cleared"])
    assert "cleared, then loaded" not in traits(found["cleared"].replace("s[i] = A[k, i]", "s[i] = 1"))
    assert "tile loaded before and in a pipeline" in traits(found["preloaded"])
    assert "tile loaded before and in a pipeline" not in traits(found["preloaded"].replace("T.copy(A[0, 0], a)", ""))
    assert "tile that nothing reads" in traits(found["unread"])
    assert "tile that nothing reads" not in traits(found["unread"].replace("C[k, i] = d[i]", "C[k, i] = d[i] + e[i]"))
    assert "tile that nothing reads" not in traits(found["overlapped"])  # a statement after the pipeline does


def test_reads_of_a_tile_that_are_not_seen_are_traits() -> None:
    found = {name: text for name, (_, text) in kernels().items()}
    view, condition = "view of a tile in a pipeline", "tile in a condition of a step"
    assert view in traits(found["unstaged"])
    assert view not in traits(found["unstaged"].replace("T.reshape(a,", "T.reshape(b,"))
    assert condition in traits(found["peeked"])
    assert condition not in traits(found["peeked"].replace("if m[0] > 0", "if k > 0"))


def test_a_scan_of_a_tile_that_a_pipeline_loads_is_a_trait() -> None:
    text = kernels()["staged"][1]
    assert "scan of a tile in a pipeline" in traits(text)
    assert "scan of a tile in a pipeline" not in traits(text.replace("T.cumsum(a,", "T.cumsum(c,"))


def test_a_fixed_row_of_an_operand_is_a_trait() -> None:
    text = kernels()["swizzled"][1]
    assert "row of an operand" in traits(text)
    assert "row of an operand" not in traits(text.replace("a[3, j]", "a[i, j]"))
    assert "row of an operand" not in traits(text.replace("T.gemm(a, a, c", "T.gemm(b, b, c"))


def test_barriers_that_count_too_few_are_told_from_those_that_miss_some() -> None:
    text = kernels()["miscounted"][1]
    illegal = Symptom("TLL001", "illegal", "", "store shared in T.Parallel", "")
    assert known(illegal, "128 threads reach barrier 3, which counts 64", text, "0.1.15") == "miscounted"
    assert known(illegal, "64 threads reach barrier 3, in a branch", text, "0.1.15") == ""


def test_tiles_used_after_a_pipeline_and_late_beginnings_are_traits() -> None:
    found = {name: text for name, (_, text) in kernels().items()}
    after, late = "tile used after its pipeline", "pipeline that begins late"
    assert after in traits(found["outlived"])
    assert after not in traits(found["outlived"].replace("C[i] = a[i]", "C[i] = 1"))
    assert after not in traits(found["preloaded"])
    assert late in traits(found["unawaited"])
    assert late not in traits(found["unawaited"].replace("Pipelined(bx, 8", "Pipelined(1, 8"))


def test_a_tile_that_a_loop_loads_is_like_one_that_a_copy_loads() -> None:
    text, loop = kernels()["unread"][1], "for i in T.Parallel(1024):\n                    e[i] = {}\n"
    unread = "tile that nothing reads"
    assert unread in traits(text.replace("T.copy(E, e)\n", loop.format("E[i]")))
    assert unread not in traits(text.replace("T.copy(E, e)\n", loop.format("1.0")))


def test_reads_and_atomics_beside_a_barrier_of_some_threads_are_known() -> None:
    """An atomic of a tile that all have set; a store into one that all have read. In a while loop, of one statement."""
    found = {name: text for name, (_, text) in kernels().items()}
    missing = Symptom("TLR001", "unordered", "tl.ThreadSync", "T.atomic_add shared", "T.clear shared")
    says = "between the write of s at line 1 (thread 63) and the atomic of s at line 2 "
    assert known(missing, says, found["partial"], "0.1.15") == "partial"
    assert known(missing, says.replace("atomic of s", "atomic of t"), found["partial"], "0.1.15") == ""
    store = Symptom("TLR001", "unordered", "tl.ThreadSync", "store shared in T.Parallel", "T.copy shared fragment")
    read = "between the read of s at line 1 (thread 32) and the write of s at line 2 "
    assert known(store, read, found["partial"], "0.1.15") == "partial"
    again = Symptom("TLR001", "unordered", "tl.ThreadSync", "T.copy global shared", "T.copy global shared")
    turned = "between the read of s at line 4 (thread 7) and the write of s at line 4 (thread 0); both in a while loop"
    assert known(again, turned, found["repeated"], "0.1.15") == "repeated"
    assert (
        known(again, turned.replace("s at line 4 (thread 0", "s at line 5 (thread 0"), found["repeated"], "0.1.15")
        == ""
    )


def test_an_atomic_and_a_view_are_told_as_a_store_is() -> None:
    """Within a warp between an atomic and a bulk copy; and two writes of one buffer by two names."""
    text = kernels()["hoisted"][1]
    within = (
        "between the atomic of s at line 1 (thread 3, TIR line 2) and the read of s at line 2 (thread 0, TIR line 3)"
    )
    bulk = Symptom("TLR001", "unordered", "tl.ThreadSync", "T.copy shared global", "T.atomic_min shared")
    assert known(bulk, within, text, "0.1.15") == "hoisted"
    views = "between the write of s at line 1 (thread 30) and the write of v at line 2, which are views of one buffer"
    filled = Symptom("TLR001", "unordered", "tl.ThreadSync", "T.fill view", "T.copy global shared")
    assert known(filled, views, text, "0.1.15") == "filled"


def test_a_scan_in_a_branch_changes_what_that_asked() -> None:
    body = "        s = T.alloc_shared((64,), 'int32')\n        if s[bx] > 0:\n            T.cumsum(s, s, dim=0)\n"
    text = "def main():\n    with T.Kernel(1, threads=64) as bx:\n" + body
    changes = "branch changes what it asked"
    assert changes in traits(text)
    assert changes not in traits(text.replace("cumsum(s, s", "cumsum(t, t"))


def test_threads_that_leave_a_loop_are_asked_for() -> None:
    text, illegal = kernels()["deserted"][1], Symptom("TLL001", "illegal", "", "store shared", "")
    counted = "64 threads reach a barrier that counts 128"
    assert known(illegal, counted, text, "0.1.15") == "deserted"
    kept = text.replace("T.loop_break()", "pass")
    assert known(illegal, counted, kept, "0.1.15") == ""
    assert known(illegal, counted, kept.replace("T.serial(4)", "T.serial(tx, 4)"), "0.1.15") == "deserted"


def test_atomics_of_a_part_of_a_warp_are_a_trait() -> None:
    text, atomic = kernels()["forgotten"][1], "between the atomic of s at line 1 and the read of s at line 2"
    missing = Symptom("TLR001", "unordered", "tl.ThreadSync", "T.copy shared global", "T.atomic_add shared shared")
    assert known(missing, atomic, text, "0.1.15") == "forgotten"
    assert known(missing, atomic, text.replace("T.Parallel(28)", "T.Parallel(32)"), "0.1.15") == ""
    assert known(missing, atomic.replace("of s at line 2", "of t at line 2"), text, "0.1.15") == ""


def test_a_guarded_read_that_is_converted_is_told_from_one_that_is_not() -> None:
    text, beyond = kernels()["exposed"][1], Symptom("TLL001", "illegal", "", "store shared in T.Parallel")
    says = "access of s out of bounds"
    assert known(beyond, says, text, "0.1.15") == "exposed"
    assert known(beyond, says, text.replace("T.cast(s[i]", "T.max(s[i]"), "0.1.15") == ""
    assert known(beyond, "bulk copy of s beyond the end of its memory", text, "0.1.15") == ""


def test_a_condition_that_reads_a_tile_is_told_from_another_one() -> None:
    text = kernels()["presumed"][1]
    shows = Symptom("TLO002", "unguarded", "", "store fragment in T.Parallel", "T.copy global fragment")
    assert known(shows, "", text, "0.1.15") == "presumed"
    assert known(shows, "", text.replace("if s[i, j // 2] > 0", "if i > 0"), "0.1.15") == ""


def test_memory_of_two_sizes_is_read_then_written() -> None:
    text, loads = kernels()["bytewise"][1], ("T.copy global shared", "store shared in T.Parallel")
    missing = Symptom("TLR001", "unordered", "tl.ThreadSync", *loads)
    read = "between the read of s at line 1 and the write of t at line 2, which lie in the same memory"
    assert known(missing, read, text, "0.1.15") == "bytewise"
    assert known(missing, read.replace("write of t", "write of s"), text, "0.1.15") == ""
    assert known(missing, read, text, "0.1.7.post2") == ""


def test_a_scan_in_a_pipeline_is_one_of_half_of_the_threads() -> None:
    head, loop = "with T.Kernel(1) as x:\n", "    for k in T.Pipelined(4, num_stages=2):\n        "
    assert "scan in or after a pipeline" in traits(f"{head}{loop}T.cummax(s)\n")
    assert "scan in or after a pipeline" not in traits(f"{head}    T.cummax(s)\n{loop}T.copy(s, B)\n")


def test_a_race_through_a_view_is_one_in_a_warp() -> None:
    text = kernels()["hoisted"][1]
    missing = Symptom("TLR001", "unordered", "tl.ThreadSync", "T.atomic_add global", "T.copy global shared")
    accesses = "the write of s at line 1 (thread 0) and the read of v at line 2 (thread 8)"
    views = f"between {accesses}, which are views of one buffer"
    assert known(missing, views, text, "0.1.15") == "hoisted"
    assert known(missing, views.replace("views of one buffer", "no views"), text, "0.1.15") == ""
    assert known(missing, views.replace("thread 8", "thread 64"), text, "0.1.15") == ""


def test_a_tile_on_memory_in_use_is_no_copy_that_another_one_overtakes() -> None:
    text, loads = kernels()["unread"][1], Symptom("TLR001", "unordered", "", *("T.copy global shared",) * 2)
    missing = "a wait for the copy is missing between the write of e at line 1 and the write of"
    assert known(loads, f"{missing} a at line 2, which lie in the same memory", text, "0.1.15") == "unread"
    assert known(loads, f"{missing} e at line 1", text, "0.1.15") == "overlapped"


def test_a_tile_is_read_before_a_pipeline_without_a_product_too() -> None:
    text = kernels()["scaled"][1]
    assert "operand read before" in traits(text.replace("T.gemm(a, b, c)", "T.copy(a, d)"))


def test_relations_are_of_two_lines() -> None:
    text = kernels()["turns"][1]
    lines = {line.strip(): number for number, line in enumerate(text.splitlines(), 1)}
    reads, writes = lines["c[0] = c[0] + s[127 - tx]"], lines["s[tx] = A[k, tx]"]
    assert relations(text, reads, writes) == ("in a later step", "both in a loop", "a branch apart")
    assert relations(text, writes, reads) == ("both in a loop", "a branch apart")
    assert "a branch apart" not in relations(text, reads, reads)
    assert relations(text, reads, 1) == ()
    text = kernels()["asked"][1]
    test = next(n for n, line in enumerate(text.splitlines(), 1) if "if s[0] > 1" in line)
    assert "a condition and its branch" in relations(text, test, test + 2)
    loop = text.replace("            if s[0] > 1:", "            for k in T.serial(2):\n              if s[0] > 1:")
    assert loop != text
    assert "a condition and its branch" in relations(loop, test, test + 3)  # the read as the loop's


def test_a_branch_that_fills_shared_memory_has_a_barrier() -> None:
    text = """
with T.Kernel(2, threads=128) as bx:
    s = T.alloc_shared((128,), "int32")
    T.copy(A, s)
    if bx > 0:
        t = T.alloc_shared((128,), "int32")
        T.copy(B, t)
    else:
        T.copy(s, C)
    T.copy(s, D)
"""
    relation = "a branch of a block between"
    assert [relation in relations(text, 4, line) for line in (7, 9, 10)] == [False, True, True]
    assert relation not in relations(text.replace("T.copy(B, t)", "T.copy(t, B)"), 4, 10)
    parts = text.replace(
        "        T.copy(B, t)\n    else:\n        T.copy(s, C)", "        T.copy(s, C)\n    else:\n        T.copy(B, t)"
    )
    later = parts.replace("T.copy(s, D)", "T.copy(D, s)")
    assert parts != text  # a read in the first part, and the second has a barrier
    assert [relation in relations(later, 7, line) for line in (4, 9, 10)] == [False, False, True]
    assert relation not in relations(later.replace("T.copy(B, t)", "T.copy(t, B)"), 7, 10)


def test_traits_of_shared_elements_and_of_tiles_that_no_step_reads() -> None:
    found = {name: text for name, (_, text) in kernels().items()}
    every, unread = "element set by all in a loop", "tile that no step reads"
    assert every in traits(found["overtaken"])
    assert every not in traits(found["overtaken"].replace("m[0] = k", "m[x] = k"))
    assert unread in traits(found["overlapped"])
    assert unread not in traits(
        found["overlapped"].replace("T.copy(a, C", "T.copy(b, C").replace("k, 0], a)", "k, 0], b)")
    )


def test_a_table_may_be_read_behind_the_pipeline() -> None:
    text = (
        "def main():\n    with T.Kernel(1, threads=128) as bx:\n        s = T.alloc_shared((64,), 'float16')\n"
        "        for i in T.Parallel(64):\n            s[i] = 1\n"
        "        for k in T.Pipelined(4, num_stages=2):\n            T.gemm(a, b, c)\n"
        "        for i in T.Parallel(64):\n            B[i] = s[i]\n"
    )
    assert "on both sides of a pipeline" in relations(text, 9, 5)
    assert "on both sides of a pipeline" not in relations(text, 7, 5)
    sides = Symptom("TLR001", "unordered", "tl.ThreadSync", "store global in T.Parallel", "store shared in T.Parallel")
    assert known(sides, "on both sides of a pipeline", kernels()["table"][1], "0.1.15") == "table"


@pytest.mark.parametrize(("step", "stores"), [("m[0] = k", True), ("B[k] = m[0]", False)])
def test_a_step_that_stores_to_shared_memory_needs_no_product(step: str, stores: bool) -> None:
    text = (
        "def main():\n    with T.Kernel(1, threads=128) as bx:\n        s = T.alloc_shared((64,), 'float32')\n"
        "        m = T.alloc_shared((1,), 'int32')\n        T.transpose(A, s)\n"
        f"        for k in T.Pipelined(4, num_stages=2):\n            {step}\n        T.copy(s, B)\n"
    )
    assert ("elements in a pipeline" in traits(text)) == stores
    assert "on both sides of a pipeline" in relations(text, 8, 5)
    told = known(
        Symptom("TLR001", "unordered", "tl.ThreadSync", "T.copy shared global", "T.transpose shared shared"),
        "between the write of s at line 5 and the read of s at line 8; on both sides of a pipeline",
        text,
        "0.1.15",
    )
    assert told == ("table" if stores else "")


@pytest.mark.parametrize(("loop", "has"), [("Pipelined(4, num_stages=2)", True), ("serial(4)", False)])
def test_a_reducer_in_a_pipeline_is_one_that_nothing_may_set(loop: str, has: bool) -> None:
    text = (
        "def main():\n    with T.Kernel(1, threads=128) as bx:\n"
        f"        for k in T.{loop}:\n            T.finalize_reducer(r)\n            T.copy(r, f)\n"
    )
    shows = Symptom("TLO002", "other-value", "tl.LowerTileOp", "store reducer in T.Parallel")
    assert known(shows, "", text, "0.1.15") == ("unset" if has else "")


@pytest.mark.parametrize(("row", "by_threads"), [(66, True), (64, False)])
def test_rows_that_no_bulk_copy_takes_are_copied_by_threads(row: int, by_threads: bool) -> None:
    text = (
        f"def main(A: T.Tensor((256, {row}), 'float16')):\n    with T.Kernel(1, threads=128) as bx:\n"
        "        s = T.alloc_shared((64, 64), 'float16')\n        f = T.alloc_fragment((64, 64), 'float32')\n"
        "        for k in T.Pipelined(4, num_stages=2):\n            T.copy(A[k * 64, 0], s)\n"
        "            T.gemm(s, s, f)\n"
    )
    assert ("elements in a pipeline" in traits(text)) == by_threads


def test_an_atomic_of_one_of_two_elements_is_not_repeated() -> None:
    """A kernel that adds one of two elements before a pipeline loses its atomic, whatever else it shows."""
    atomic = "T.atomic_add(n[T.get_thread_binding() % 4], 1)"
    text = kernels()["joined"][1]
    assert text.count(atomic) == 1
    chosen = text.replace(atomic, "T.atomic_add(n[0], T.if_then_else(n[1] > 0, N[2], N[3]))")
    value, unset = (Symptom("TLO001", kind, "", "T.atomic_add shared") for kind in ("other-value", ""))
    assert [known(value, "", each, "0.1.15") for each in (text, chosen)] == ["joined", "either"]
    assert [known(unset, "", each, "0.1.15") for each in (text, chosen)] == ["", "either"]
    twice = Symptom("TLA005", "repeated", "tl.LowerTileOp", "T.atomic_add shared")
    assert known(twice, "", chosen, "0.1.15") == "joined"
    bounded = text.replace(atomic, "T.atomic_add(n[0], T.if_then_else(n[1] > 0, N[2], 0))")
    assert known(unset, "", bounded, "0.1.15") == ""


def test_a_pipeline_that_has_steps_waits() -> None:
    text = kernels()["empty"][1]
    reads = Symptom("TLR001", "unordered", "", "T.copy shared fragment", "T.copy global shared")
    assert known(reads, "", text, "0.1.15") == "empty"
    for steps in ("bx + 1", "3"):
        assert known(reads, "", text.replace("T.Pipelined(bx,", f"T.Pipelined({steps},"), "0.1.15") == ""


def test_a_read_in_a_later_step_has_its_barrier() -> None:
    text = kernels()["table"][1]
    reads = Symptom("TLR001", "unordered", "tl.ThreadSync", "T.copy shared fragment", "store shared in T.Parallel")
    assert known(reads, "both before a pipeline", text, "0.1.15") == "table"
    assert known(reads, "in a later step; both before a pipeline", text, "0.1.15") == ""


def test_a_barrier_inside_a_warp_is_told_by_the_threads() -> None:
    text = kernels()["hoisted"][1]
    shows = Symptom("TLR001", "unordered", "tl.ThreadSync", "store shared in T.Parallel", "store shared in T.Parallel")
    words = "between the write of s at line 9 (thread 27, TIR line 8) and the {} of s at line 11 (thread {})"
    assert known(shows, words.format("read", 0), text, "0.1.15") == "hoisted"
    assert known(shows, words.format("read", 32), text, "0.1.15") == ""
    assert known(shows, words.format("write", 0), text, "0.1.15") == "filled"


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FuzzBench]:
    found = FuzzBench(resolve("0.1.15", ()), tmp_path_factory.mktemp("bench"), REQUEST, {})
    yield found
    found.close()


@pytest.mark.slow
@pytest.mark.toolchain
@pytest.mark.parametrize("name", [name for name, entry in KNOWN.items() if "0.1.15" in entry["releases"]])
def test_a_campaign_names_a_finding_by_its_own_kernel(name: str, bench: FuzzBench) -> None:
    function, text = kernels()[name]
    arch = next(arch for arch, releases in EXPECTED[name].items() if releases["0.1.15"]["verdict"] == "refuted")
    found = outcome(bench.judged(text, function, arch), text)
    names = {known(shows, says, text, "0.1.15") for shows, says in zip(found.symptoms, found.says, strict=True)}
    assert names == {name}


def test_views_casts_and_kept_registers_are_told_apart() -> None:
    found = {name: text for name, (_, text) in kernels().items()}
    wanted = {
        "viewed": "registers viewed before a pipeline",
        "rotated": "registers before and after a pipeline",
        "unsigned": "sign of a cast",
        "shifted": "registers turned",
        "inplace": "reduced in place",
    }
    for name, trait in wanted.items():
        others = set(wanted.values()) & traits(found[name]) - {trait}
        assert trait in traits(found[name])
        assert others <= ({"registers before and after a pipeline"} if name == "viewed" else set())
    assert "reduced in place" not in traits(found["inplace"].replace("1)), f, dim", "1)), g, dim"))
    assert "sign of a cast" not in traits(found["unsigned"].replace("T.cast(A[i], 'int8')", "A[i]"))
    assert "registers viewed before a pipeline" not in traits(
        found["viewed"].replace("Pipelined(4, num", "serial(4, num")
    )
    assert "registers before and after a pipeline" not in traits(
        found["rotated"].replace("T.copy(a, D)", "T.copy(s, D)")
    )


def test_a_reducer_of_a_small_tile_has_fewer_elements_than_threads() -> None:
    text = kernels()["unreduced"][1].replace("Parallel(tile, tile)", "Parallel(2, 2)")
    assert "reducer of a small tile" in traits(text)
    as_many = text.replace("threads=32", "threads=4")
    assert "reducer of a small tile" not in traits(as_many)
    assert "reducer of a small tile" in traits(
        as_many.replace("T.serial(columns // tile)", "T.Pipelined(4, num_stages=2)")
    )
    shows = Symptom("TLO001", "other-value", "", "store reducer in T.Parallel")
    assert known(shows, "", text, "0.1.15") == "unreduced"
    assert known(shows, "", as_many, "0.1.15") == ""


def test_widened_numbers_have_their_name_on_amd_too() -> None:
    assert (
        known(Symptom("TLO001", "other-value", "", "store global"), "int8 - int8 is an int in HIP", "", "0.1.15")
        == "widened"
    )


def test_a_statement_of_a_short_pipeline_may_be_done_twice() -> None:
    text = kernels()["doubled"][1]
    line = next(
        number for number, line in enumerate(text.splitlines(), 1) if "s[i] + t[i]" in line or "s[i] +=" in line
    )
    assert remarks(text, line) == ("of a pipeline with fewer steps than stages",)
    assert remarks(text.replace("Pipelined(1,", "Pipelined(2,"), line) == ()
    assert remarks(text.replace("Pipelined(1,", "Pipelined(1, 2,"), line) != ()


def test_a_barrier_inside_a_warp_is_told_by_its_threads() -> None:
    text = kernels()["hoisted"][1]
    shows = Symptom("TLR001", "unordered", "tl.ThreadSync", "store shared in T.Parallel", "T.copy global shared")
    says = "a barrier is missing between the write of s at line 1 (thread {}) and the read of s at line 2 (thread {})"
    assert known(shows, says.format(15, 0), text, "0.1.15") == "hoisted"
    assert known(shows, says.format(143, 128), text, "0.1.15") == "hoisted"
    assert known(shows, says.format(15, 128), text, "0.1.15") != "hoisted"
    assert known(shows, f"{says.format(15, 0)}; both in a loop", text, "0.1.15") != "hoisted"


def test_a_pipeline_in_a_loop_that_some_blocks_skip_is_like_one_in_a_branch() -> None:
    text = kernels()["nested"][1]
    loop = next(line for line in text.splitlines() if "in T.serial(" in line)
    assert "pipeline in a branch" not in traits(text)
    skipped = loop[: loop.index("T.serial(")] + "T.serial(bx):"
    assert "pipeline in a branch" in traits(text.replace(loop, skipped))
