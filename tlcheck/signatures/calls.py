"""Names and arguments of calls, be they of intrinsics or of external functions."""

from __future__ import annotations

from tlcheck.snapshot.ir import Expr

_EXTERNAL = ("call_extern", "call_pure_extern", "call_llvm_pure_intrin")


def is_external(e: Expr) -> bool:
    """Whether an expression calls a function by the name that is its first argument."""
    return e.op == "call" and e.value in _EXTERNAL and bool(e.args) and e.args[0].op == "str"


def name_of_call(e: Expr) -> str:
    """Return the name of what is called: of the function itself where that is external."""
    return str(e.args[0].value if is_external(e) else e.value)


def arguments_of_call(e: Expr) -> tuple[Expr, ...]:
    """Return the arguments of what is called, without the name of an external function."""
    return e.args[1:] if is_external(e) else e.args


def library_name(text: str) -> str:
    """Return the name of a function of the device library, without template arguments and `::run`."""
    head, _, rest = text.partition("<")
    return (head + rest[rest.rfind(">") + 1 :]).removesuffix("::run")


def template_arguments(text: str) -> list[str]:
    """Return the template arguments in a function's name."""
    depth, found = 0, [""]
    for letter in text[text.index("<") + 1 : text.rindex(">")] if "<" in text else "":
        depth += (letter == "<") - (letter == ">")
        if letter == "," and depth == 0:
            found.append("")
        else:
            found[-1] += letter
    return [part.strip() for part in found if part.strip()]
