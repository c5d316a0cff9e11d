"""Without the modules of Python that only Unix has, the command starts and everything public can be imported."""

import subprocess
import sys

import pytest

UNIX_ONLY = ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog", "posix", "uvloop")
# Other packages look at sys.platform and import them here, on Linux; ours may not need them anywhere.
ELSEWHERE = f"""
import builtins, sys
original = builtins.__import__
def importing(name, globals=None, *others, **named):
    if name in {UNIX_ONLY!r} and str((globals or {{}}).get("__name__")).startswith("sentloom"):
        raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
    return original(name, globals, *others, **named)
builtins.__import__ = importing
"""
NAMES = "import sentloom; print([getattr(sentloom, name) for name in sentloom.__all__])"
COMMAND = "from sentloom.cli import main; main()"


def elsewhere(code, *arguments):
    return subprocess.run([sys.executable, "-c", ELSEWHERE + code, *arguments], capture_output=True, text=True)


@pytest.mark.parametrize("arguments", [["--help"], ["fit", "--help"]])
def test_the_command_starts(arguments):
    done = elsewhere(COMMAND, *arguments)
    assert (done.returncode, "Usage" in done.stdout) == (0, True), done.stderr


def test_everything_public_can_be_imported():
    done = elsewhere(NAMES)
    assert (done.returncode, "Encoder" in done.stdout) == (0, True), done.stderr
