"""Run by a toolchain's interpreter in place of a worker's own file: a worker whose jobs follow the tests.

argv: a file with the working folder and the variables that a job begins with, then the worker's file and its arguments.
"""

import json
import os
import runpy
import sys
from pathlib import Path

PLACE, MAIN, *ARGUMENTS = sys.argv[1:]
SERVER = os.getpid()


def follow() -> None:
    """Begin a job where the test is that asks for it."""
    if os.getppid() == SERVER:
        folder, variables = json.loads(Path(PLACE).read_text())
        os.chdir(folder)
        for name, value in variables.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


os.register_at_fork(after_in_child=follow)
sys.argv[:] = [MAIN, *ARGUMENTS]
del sys.path[0]  # the folder of this file
runpy.run_path(MAIN, run_name="__main__")
