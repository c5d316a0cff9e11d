"""A fit without labels that people decide: ticked in the terminal, then fitted again with the answers."""

import io
import json
import re

import pytest

from sentloom.encoder import Encoder
from sentloom.ticking.answers import Answer, Header, sealed
from tests.fitting import small_base


def say_fitted(path):
    """Turn every answer of a file into a preference for the fitted model."""
    first, *others = (json.loads(line) for line in path.read_text("utf-8").splitlines())
    for line in (first, *others):
        del line["checksum"]
    changed = [Header(**first), *(Answer(**{**other, "answer": "fitted"}) for other in others)]
    path.write_bytes(b"".join(map(sealed, changed)))


@pytest.mark.long
def test_what_people_prefer_is_written_and_nothing_is_trained_again(run, sentloom, monkeypatch, tmp_path):
    text, ticks = small_base.prose(tmp_path / "raw.txt", 2000), tmp_path / "model.fit" / "ticks.jsonl"
    done, before, output = run(text, budget="60steps")
    assert (done.returncode, output.exists()) == (3, False)
    monkeypatch.setattr("sys.stdin", io.StringIO("b\n" * 400))
    ticked = sentloom("tick", tmp_path / "model.fit", "--terminal")
    assert "VERDICT no difference shown" in ticked.stdout, ticked.stderr
    say_fitted(ticks)
    done, result, output = run(text, budget="60steps", options=["--labels", ticks])
    assert done.returncode == 0
    assert "done before" in done.stdout
    assert (result.verdict, result.total.metric) == ("better", "preference")
    assert result.ticks.used == result.ticks.answered == result.ticks.different, "everything was asked"
    assert result.hashes == before.hashes
    assert re.match(r"VERDICT better \+.* preference", done.stdout.splitlines()[-1])
    assert Encoder.load(output).fingerprint() == result.hashes["model"]
    assert "One person compared" in (tmp_path / "model.fit" / "report.html").read_text("utf-8")
