"""The name of a data file controls neither a terminal nor a page that shows the texts of its fit."""

import json
import re

from tests.fitting import small_base

NAME = "a\x1b[31m\x07\x9b2J\x85\u202eevil\u2066x\x7f\n# head <b>bold<b> [l](x) |```*_.tsv"
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
READ = (".md", ".html", ".json", ".yaml", ".jsonl", ".txt")
FENCED = re.compile(r"^(````*)\w*\n.*?^\1$", re.MULTILINE | re.DOTALL)


def test_a_hostile_name_has_no_effect_in_any_text_of_a_fit(sentloom, tmp_path, monkeypatch, one_thread):
    small_base.pairs(tmp_path / NAME)
    monkeypatch.chdir(tmp_path)
    base = small_base.build_base(tmp_path / "bases")
    done = sentloom("fit", NAME, "-o", "m", "--base", base, "--budget", "12steps", "--force")
    assert done.returncode == 0, done.stderr
    assert not CONTROL.search(done.stdout + done.stderr)
    texts = {path: path.read_text("utf-8") for path in tmp_path.rglob("*") if path.suffix in READ}
    named = {path.name for path, text in texts.items() if "evil" in text}
    assert named >= {"report.md", "report.html", "report.json", "README.md"}
    assert {str(path): found[0] for path, text in texts.items() if (found := CONTROL.search(text))} == {}
    assert [source["name"] for source in json.loads(texts[tmp_path / "m.fit" / "report.json"])["sources"]] == [NAME]
    for path in (tmp_path / "m" / "README.md", tmp_path / "m.fit" / "report.md", tmp_path / "m.fit" / "report.html"):
        shown = FENCED.sub("", texts[path])
        assert "<b>bold" not in shown
        assert path.suffix == ".html" or not re.search("^# head", shown, re.MULTILINE)
