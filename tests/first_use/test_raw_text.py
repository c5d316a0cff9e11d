"""After a fit on raw text, ticking is advised only if it is possible: base and model have to disagree."""

import json
import re

import pytest

NOUNS = (
    "apples bread boats horses violins lamps carpets hammers shoes clocks bicycles tulips onions mirrors wagons kettles "
    "gloves pencils candles ropes barrels saddles drums hats knives plates tents bricks pearls books stamps coins maps "
    "dolls kites swords anchors bells buttons cradles"
)
SENTENCES = (
    "We sell {0} at the old market, and our {0} are delivered to every shop before noon.",
    "Last winter nobody wanted {0}, but this spring all families ask for cheap {0} again.",
    "My uncle repairs broken {0} in his cellar, because new {0} have become too expensive.",
    "The museum shows {0} from three centuries, and a guide explains how such {0} were made.",
    "If it rains, the {0} are kept under a roof, since wet {0} lose their value at once.",
)


@pytest.mark.long
def test_nothing_is_advised_that_is_refused(sentloom, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    texts = [sentence.format(noun) for noun in NOUNS.split() for sentence in SENTENCES]
    (tmp_path / "notes.txt").write_text("\n".join(texts) + "\n", "utf-8")
    done = sentloom("fit", "notes.txt", "-o", "model", "--budget", "1steps", "--force")
    assert done.returncode == 0, done.stderr
    advised = r"a different first result for (\d+) of (\d+) held-out queries, and 20 are needed"
    asked, total = re.search(advised, " ".join(done.stdout.split())).groups()
    assert int(asked) < 20
    assert "sentloom tick" not in done.stdout + (tmp_path / "model/README.md").read_text("utf-8")
    for name in ("report.md", "report.html"):
        page = (tmp_path / "model.fit" / name).read_text("utf-8")
        assert "There is nothing to decide" in page
        assert "sentloom tick" not in page
    advice = json.loads((tmp_path / "model.fit/report.json").read_text("utf-8"))["advice"]
    assert any("There is nothing to decide" in line for line in advice)
    refused = sentloom("tick", "model.fit")
    assert refused.returncode == 2
    assert f"a different first result for {asked} of {total} held-out queries" in refused.stderr
