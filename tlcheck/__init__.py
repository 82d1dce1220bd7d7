"""tlcheck: lower TileLang kernels with any release and prove or refute their atomics.

Kernel files import this package inside a toolchain's interpreter to declare their cases, so it must need
nothing but the standard library.
"""

from tlcheck.case import Case, Expect

__version__ = "0.1.0"
__all__ = ["Case", "Expect", "__version__"]
