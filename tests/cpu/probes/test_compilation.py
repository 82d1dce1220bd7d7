"""Test what nvcc and ptxas say, by kernel. The messages were said by nvcc 13.0."""

from __future__ import annotations

from tlcheck.probes.compilation import back_errors, front_errors, without

FRONT = """\
/x/tl_templates/cuda/atomic.h(503): error: no instance of overloaded function "atomicAdd" matches the argument list
            argument types are: (short *, short)
      atomicAdd(reinterpret_cast<NT1 *>(address), cuda_cast<NT1>(val));
      ^
          detected during instantiation of "void AtomicAdd(T1 *, T2, int) [T1=short]" at line 12 of probes.cu

probes.cu(14): error: no instance of overloaded function "AtomicAddx2" matches the argument list
            argument types are: (double *, double2)

2 errors detected in the compilation of "probes.cu".
"""
PTX = """\
.visible .entry p3(
\t.param .u64 p3_param_0
)
{
\tret;

}
\t// .globl\tp7
.visible .entry p7(
\t.param .u64 p7_param_0
)
{
\tatom.acq_rel.gpu.global.add.v2.bf16 {%rs1,%rs2}, [%rd1], {%rs3,%rs4};
\tret;

}
"""
BACK = "ptxas read.ptx, line 13; error   : Modifier '.noftz' required for instruction 'atom'\nptxas fatal   : aborted\n"


def test_an_error_in_a_header_belongs_to_the_kernel_that_asked() -> None:
    found = front_errors(FRONT, 10)
    assert found == {
        2: 'atomic.h(503): no instance of overloaded function "atomicAdd" matches the argument list',
        4: 'no instance of overloaded function "AtomicAddx2" matches the argument list',
    }


def test_an_error_of_ptxas_belongs_to_the_kernel_around_its_line() -> None:
    assert back_errors(BACK, PTX) == {7: "Modifier '.noftz' required for instruction 'atom'"}


def test_a_kernel_is_cut_out_and_the_lines_stay() -> None:
    cut = without(PTX, {3})
    assert "p3(" not in cut
    assert back_errors(BACK, cut) == {7: "Modifier '.noftz' required for instruction 'atom'"}
