"""`sentloom.fit` in Python: messages and progress where somebody watches, nothing elsewhere or if it is not wanted."""

import sys

import nbformat
import pytest
from nbclient import NotebookClient

import sentloom
from tests.encoder.small_models import build_model_folder

PAIRS = [(f"how much is ticket {n}?", f"ticket {n} costs {3 * n} euros") for n in range(120)]
CELL = """
import sentloom
pairs = [(f"how much is ticket {n}?", f"ticket {n} costs {3 * n} euros") for n in range(120)]
done = sentloom.fit(pairs, "model", base="bert", budget="2steps", force=True)
"""


def test_a_fit_is_quiet_unless_somebody_watches(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    build_model_folder("bert", tmp_path / "bert")
    capsys.readouterr()

    def shown(**options):
        sentloom.fit(PAIRS, "model", base="bert", budget="2steps", force=True, **options)
        return "".join(capsys.readouterr())

    assert shown() == ""
    assert "Verifying on the test rows" in shown(show_progress=True)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert "Verifying on the test rows" in shown()
    assert shown(show_progress=False) == ""
    messages = []
    shown(log=messages.append)
    assert any("Verifying on the test rows" in line for line in messages)


@pytest.mark.long
def test_a_notebook_shows_messages_and_no_blank_outputs(tmp_path):
    build_model_folder("bert", tmp_path / "bert")
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)])
    NotebookClient(book, kernel_name="python3", timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = book.cells[0].outputs
    texts = [one.get("text") or one.get("data", {}).get("text/plain", "") for one in outputs]
    assert all(text.strip() for text in texts)
    assert "Verifying on the test rows" in "".join(one.text for one in outputs if one.get("name") == "stdout")
