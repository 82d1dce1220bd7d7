"""An excerpt of the file of wrong kernels."""

from tests.cpu.wrong_kernels import FILE, alone


def test_a_case_alone_has_what_it_uses_in_its_lines() -> None:
    whole, part = FILE.read_text().splitlines(), alone("loop").splitlines()
    assert len(part) == len(whole)
    assert all(line in ("", same) for line, same in zip(part, whole, strict=True))
    defined = [line for line in part if line.startswith(("def ", "loop = ", "HALF, FLOAT"))]
    assert [line.partition("(")[0].partition(" =")[0] for line in defined] == [
        "def integers",
        "def stepped",
        "def truncated",
        "HALF, FLOAT, INT",
        "loop",
    ]
