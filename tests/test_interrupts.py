"""Ctrl-C is answered at once, whatever is running."""

import os
import signal
import subprocess
import sys
import time

import pytest

from sentloom.interrupts import SAVING, STOPPING, announce_interrupts, stop_asked
from sentloom.writing.views.translation import EmbeddedTranslator


def test_a_run_that_has_to_save_prints_so_at_once(capfd):
    with stop_asked() as stop:
        os.kill(os.getpid(), signal.SIGINT)
        assert stop()
        assert SAVING in capfd.readouterr().err
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_everything_else_prints_so_and_stops(capfd):
    before = signal.getsignal(signal.SIGINT)
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        announce_interrupts()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
    assert STOPPING in capfd.readouterr().err


def test_a_job_that_ignores_ctrl_c_keeps_ignoring_it():
    code = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    code += "from sentloom.interrupts import announce_interrupts; announce_interrupts()\n"
    code += "signal.raise_signal(signal.SIGINT); print('still here')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("still here\n", "")


def test_a_stopped_translation_does_not_wait_for_queued_texts():
    begun = []

    class Slow(EmbeddedTranslator):
        def __init__(self) -> None:
            pass

        def _back_and_forth(self, text: str) -> str:
            begun.append(text)
            time.sleep(0.02)
            return text

    views = Slow().views([str(number) for number in range(1000)])
    assert next(views) == "0"
    views.close()  # as an interrupt does
    assert len(begun) < 1000  # all of them would take many seconds
