"""The command in a process of its own."""

import os
import subprocess
import sys

ENVIRONMENT = {**os.environ, "HF_HUB_OFFLINE": "1", "COLUMNS": "500"}


def process(*arguments, cwd=None):
    """A run in a process of its own."""
    command = [sys.executable, "-c", "from sentloom.cli import main; main()", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=ENVIRONMENT)
