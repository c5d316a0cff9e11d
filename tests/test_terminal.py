"""Control characters, markup and emoji codes in printed data have no effect."""

import os
import subprocess
import sys

import pytest
from rich.table import Table
from rich.text import Text

from sentloom.progress import note
from sentloom.terminal import Terminal, printable

HOSTILE = "\x1b]0;title\x07\x1b[2J\x9b1m\r\udcff[bold]x[/bold] :x:"
SHOWN = "␛]0;title␇␛[2J\ufffd1m␍\ufffd[bold]x[/bold] :x:"
MAIN = "from sentloom.cli import main; main()"


def test_control_characters_become_pictures_and_lines_stay():
    assert printable(HOSTILE) == SHOWN
    assert printable("a\tb\nÄ 你好 \u200f🙂") == "a\tb\nÄ 你好 \u200f🙂"


@pytest.mark.parametrize("wrapped", [False, True])
def test_strings_and_cells_of_tables_are_shown_literally(wrapped, capsys):
    table = Table(HOSTILE)
    table.add_row(HOSTILE)
    Terminal(width=100, force_terminal=wrapped).print(table)
    Terminal(width=100).print(HOSTILE)
    Terminal(width=100).print(Text(HOSTILE, style="red"))
    out = capsys.readouterr().out
    assert out.count("[bold]x[/bold] :x:") == 4
    assert out.count(SHOWN) == 3  # a Text already drops some of them
    assert not {"\x07", "\x9b", "\r"} & set(out)
    assert "\x1b]" not in out
    assert "\x1b[2J" not in out


def test_notes_are_printable(capsys):
    note(HOSTILE)
    assert capsys.readouterr().err == f"{SHOWN}\n"


def test_errors_show_names_literally(sentloom, tmp_path):
    path = tmp_path / "a\x1b[31mred:x:.csv"
    path.write_text("\x1b[2J,b\n1,2\n")
    done = sentloom("check", path)
    assert done.returncode == 2
    assert "a␛[31mred:x:.csv" in done.stderr
    assert "\x1b" not in done.stderr


def test_a_closed_output_ends_quietly(tmp_path):
    (tmp_path / "a.txt").write_text("one two\n")
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-c", MAIN, "check", tmp_path / "a.txt", "-o", tmp_path / "b.txt"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")
