"""Entry point, run as a file by the toolchain's interpreter: `python .../tlcheck/worker/__main__.py`.

Without arguments it is the server (`tlcheck.worker.server`); `--no-fork` makes it run each job in a fresh process,
which is this file again with `--job FD JSON`. `--run FILE` does one task on a GPU (`tlcheck.worker.gpu`);
`--run-copies` does tasks that need none.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path


def _register_package() -> None:
    """Make `import tlcheck` work by this file's location.

    Putting the folder that holds tlcheck on `sys.path` would bring the controller's packages, its TVM among them, into
    the toolchain; and the folder that Python puts there for a script holds modules with everyday names.
    """
    worker = Path(__file__).resolve().parent
    package = worker.parent
    sys.path[:] = [entry for entry in sys.path if not entry or Path(entry).resolve() != worker]
    spec = importlib.util.spec_from_file_location(
        "tlcheck", package / "__init__.py", submodule_search_locations=[str(package)]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["tlcheck"] = module
    spec.loader.exec_module(module)


def _main(argv: list[str]) -> None:
    if argv[:1] == ["--job"]:
        from tlcheck.worker import tasks

        tasks.run_fresh(int(argv[1]), argv[2])
    elif argv[:1] == ["--run"]:
        from tlcheck.worker.gpu import main

        main.main(argv[1])
    elif argv[:1] == ["--run-copies"]:
        from tlcheck.worker.gpu import copies

        copies.serve()
    else:
        from tlcheck.worker import server

        server.main(fork="--no-fork" not in argv)


if __name__ == "__main__":
    _register_package()
    _main(sys.argv[1:])
