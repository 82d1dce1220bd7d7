"""Recorded PTX of single calls, judged: what nvcc 13.0 makes of the headers of 0.1.9, sm_90."""

from __future__ import annotations

import pytest

from tlcheck.probes.judgement import judge
from tlcheck.probes.ptx import entries
from tlcheck.probes.ptx_machine import GLOBAL, PtxMachine, UnreadPtxError
from tlcheck.program.device_library import LOST, OK, STOPS, WRONG, Behaviour, LibraryCall

POINTERS = """\
    ld.param.u64 %rd1, [p0_param_0];
    ld.param.u64 %rd2, [p0_param_1];
    cvta.to.global.u64 %rd3, %rd1;
    cvta.to.global.u64 %rd4, %rd2;
"""
PAIR = """\
    ld.global.nc.u32 %r2, [%rd4];
    { atom.add.noftz.f16x2 %r1,[%rd1],%r2; }
"""
CONVERTED = """\
    ld.global.nc.v2.f32 {%f3, %f4}, [%rd4];
    { cvt.rn.f16x2.f32 %r2, %f4, %f3; }
    { atom.add.noftz.f16x2 %r1,[%rd1],%r2; }
"""
LOW_HALF = """\
    ld.global.nc.f32 %f1, [%rd4];
    mov.b32 %r1, %f1;
    mov.b32 {%rs1, %rs5}, %r1;
    ld.global.u16 %rs6, [%rd3];

$L__BB0_1:
    cvt.u32.u16 %r2, %rs6;
    shl.b32 %r3, %r2, 16;
    mov.b32 %f2, %r3;
    setp.leu.f32 %p1, %f1, %f2;
    @%p1 bra $L__BB0_3;

    atom.global.cas.b16 %rs4, [%rd3], %rs6, %rs1;
    setp.ne.s16 %p2, %rs6, %rs4;
    mov.u16 %rs6, %rs4;
    @%p2 bra $L__BB0_1;

$L__BB0_3:
"""
ADD = """\
    ld.global.nc.f32 %f1, [%rd4];
    atom.{how}add.f32 %f2, [%rd3], %f1;
"""
SHARED = """\
    ld.global.nc.u16 %rs1, [%rd4];
    mov.u32 %r1, s0;
    { .reg .b64 %tmp;
      cvt.u64.u32 %tmp, %r1;
      cvta.shared.u64 %rd5, %tmp; }
    atom.acq_rel.gpu.global.add.noftz.f16 %rs2, [%rd5], %rs1;
"""


def judged(call: LibraryCall, body: str) -> Behaviour:
    text = f".visible .entry p0(\n.param .u64 p0_param_0\n)\n{{\n.reg .b32 %r<9>;\n{POINTERS}{body}    ret;\n}}\n"
    return judge(call, entries(text)["p0"])


def test_a_pair_that_is_only_reinterpreted_is_a_wrong_value() -> None:
    found = judged(LibraryCall("add", "float16", "float32", 2), PAIR)
    assert found.verdict == WRONG
    assert found.detail.startswith("add of 3, -5 to element 0, which holds -5, leaves -5, not -2")
    assert found.instructions == ("atom.add.noftz.f16x2",)


def test_the_same_pair_of_its_own_type_is_right_and_needs_four_bytes() -> None:
    found = judged(LibraryCall("add", "float16", "float16", 2), PAIR)
    assert found == Behaviour(OK, "", ("atom.add.noftz.f16x2",), (4, 4))


def test_a_pair_that_is_converted_is_right() -> None:
    found = judged(LibraryCall("add", "float16", "float32", 2), CONVERTED)
    assert found == Behaviour(OK, "", ("cvt.rn.f16x2.f32", "atom.add.noftz.f16x2"), (4, 8))


def test_the_low_half_of_a_float_is_a_wrong_value() -> None:
    found = judged(LibraryCall("max", "bfloat16", "float32"), LOW_HALF)
    assert found.verdict == WRONG
    assert "leaves 0, not 3" in found.detail


@pytest.mark.parametrize(
    ("order", "how", "before", "after", "verdict"),
    [
        (0, "global.", "", "", OK),
        (4, "global.", "", "", LOST),
        (4, "acq_rel.gpu.global.", "", "", OK),
        (2, "acquire.cta.global.", "", "", LOST),
        (3, "acquire.gpu.global.", "", "", LOST),
        (3, "global.", "fence.acq_rel.gpu;", "", OK),
        (3, "global.", "", "fence.acq_rel.gpu;", LOST),
        (2, "global.", "", "membar.gl;", OK),
        (2, "global.", "", "membar.cta;", LOST),
        (5, "acq_rel.gpu.global.", "", "", LOST),
        (5, "acquire.gpu.global.", "fence.sc.gpu;", "", OK),
    ],
)
def test_an_order_is_kept_by_the_instruction_or_by_fences(
    order: int, how: str, before: str, after: str, verdict: str
) -> None:
    body = before + ADD.replace("{how}", how) + after
    assert judged(LibraryCall("add", "float32", "float32", order=order), body).verdict == verdict


def test_an_instruction_for_global_memory_stops_at_an_address_in_shared_memory() -> None:
    found = judged(LibraryCall("add", "float16", "float16", order=4, shared=True), SHARED)
    assert (found.verdict, found.detail) == (
        STOPS,
        "`atom.acq_rel.gpu.global.add.noftz.f16` is for global memory and is given another address",
    )


OWN_REGISTER = """\
    ld.global.nc.u16 %rs5, [%rd4];
    ld.global.u16 %rs10, [%rd3];
$L__BB0_1:
    {.reg .b16 c;
      mov.b16 c, 0x3f80U;
      fma.rn.bf16 %rs7,%rs5,c,%rs10;}
    atom.global.cas.b16 %rs4, [%rd3], %rs10, %rs7;
    setp.ne.s16 %p1, %rs10, %rs4;
    mov.u16 %rs10, %rs4;
    @%p1 bra $L__BB0_1;
"""


def test_inline_assembly_has_registers_of_its_own() -> None:
    assert judged(LibraryCall("add", "bfloat16", "bfloat16"), OWN_REGISTER).verdict == OK
    with pytest.raises(UnreadPtxError, match="the name c"):
        judged(LibraryCall("add", "bfloat16", "bfloat16"), OWN_REGISTER.replace("mov.b16 c,", "mov.b16 %rs1,"))


def test_what_comes_back_has_to_be_the_previous_value() -> None:
    returned = "ld.param.u64 %rd6, [p0_param_2];" + ADD.replace("{how}", "global.") + "st.global.f32 [%rd6], "
    call = LibraryCall("add", "float32", "float32", returns=True)
    assert judged(call, returned + "%f2;").verdict == OK
    assert judged(call, returned + "%f1;").detail.startswith("it returns 3, not the previous -5")


def test_an_instruction_that_is_not_known_leaves_the_call_unmeasured() -> None:
    with pytest.raises(UnreadPtxError, match=r"lop3\.b32"):
        judged(LibraryCall("add", "float32", "float32"), "lop3.b32 %r1, %r2, %r3, %r4, 0x1;")


def test_a_bulk_reduction_adds_what_its_instruction_names() -> None:
    body = "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%rd1], [%r1], %r2;"
    assert judged(LibraryCall("bulk", "float32", "float32", pointer=True), body).verdict == OK
    found = judged(LibraryCall("bulk", "int32", "int32", pointer=True), body)
    assert (found.verdict, found.detail.endswith("adds numbers of f32")) == (WRONG, True)


BY_UNSIGNED = """\
    ld.global.nc.f32 %f1, [%rd4];
    cvt.rzi.{to}.f32 %rd5, %f1;
    atom.global.add.u64 %rd6, [%rd3], %rd5;
"""


@pytest.mark.parametrize(("to", "verdict"), [("s64", OK), ("u64", WRONG)])
def test_a_negative_float_is_0_as_an_unsigned_integer(to: str, verdict: str) -> None:
    found = judged(LibraryCall("add", "int64", "float32"), BY_UNSIGNED.replace("{to}", to))
    assert found.verdict == verdict
    assert ("add of -5 to element 0" in found.detail) == (verdict == WRONG)


@pytest.mark.parametrize(
    ("how", "given", "expected"),
    [
        ("rzi.u64.f32", 0xC040_0000, 0),  # -3
        ("rzi.s64.f32", 0xC040_0000, (1 << 64) - 3),
        ("rzi.s8.f32", 0x4348_0000, 127),  # 200
        ("rzi.s32.f32", 0xBFC0_0000, (1 << 32) - 1),  # -1.5
        ("rni.s32.f32", 0x4020_0000, 2),  # 2.5
        ("rmi.s32.f32", 0xBFC0_0000, (1 << 32) - 2),
        ("rpi.s32.f32", 0x3FC0_0000, 2),
        ("rzi.s32.f32", 0x7FC0_0000, 0),  # NaN
        ("rzi.s64.f32", 0x7FC0_0000, 1 << 63),
        ("rzi.u64.f32", 0x7FC0_0000, 1 << 63),
        ("rzi.s32.f32", 0x7F80_0000, (1 << 31) - 1),  # infinity
        ("rzi.s32.f32", 0xFF80_0000, 1 << 31),
    ],
)
def test_floats_become_the_nearest_integers_of_a_type(how: str, given: int, expected: int) -> None:
    to = how.split(".")[1]
    body = f"mov.b32 %r1, 0f{given:08x};\n cvt.{how} %rd5, %r1;\n st.global.u64 [%rd3], %rd5;\n"
    text = f".visible .entry p0(\n.param .u64 p0_param_0\n)\n{{\n.reg .b32 %r<9>;\n{POINTERS}{body}    ret;\n}}\n"
    machine = PtxMachine(entries(text)["p0"], {"p0_param_0": GLOBAL, "p0_param_1": GLOBAL + 4096})
    machine.run()
    width = int(to[1:])
    assert machine.read(GLOBAL, 8) & ((1 << width) - 1) == expected
