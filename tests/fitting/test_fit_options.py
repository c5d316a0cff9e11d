"""`sentloom fit` with several bases, prompts, dimensions, adapters, label columns and languages, from end to end."""

import json
import random
from functools import partial

import pytest
from safetensors import safe_open
from sentence_transformers import SentenceTransformer

from sentloom import fit
from sentloom.data import read
from sentloom.encoder import Encoder
from sentloom.encoder.tokens import Prompt
from sentloom.fitting.bases import load_bases
from tests.fitting import small_base


@pytest.fixture(scope="module")
def asking(base):
    """The same base, which was trained with a prompt for queries."""
    folder = base.with_name("asks")
    Encoder.load(base, prompts={"query": Prompt("bano belo "), "document": Prompt("")}).save(folder)
    return folder


def labelled(count=700):
    """Texts with two labels: the kind of their first word, and of their last one; every other text is Polish."""
    draw, rows = random.Random(5), []
    for number, text in enumerate(small_base.sentences(count, 6)):
        first, last = small_base.WORDS.index(text.split()[0]), small_base.WORDS.index(text.split()[-1])
        rows.append((text, f"kind {first % 3}", f"team {last % 2}", ("pl", "de")[number % 2]))
    draw.shuffle(rows)
    return rows


@pytest.mark.long
def test_bases_race_with_their_prompts_and_vectors_may_be_cut(run, asking, base, tmp_path):
    data = small_base.pairs(tmp_path / "faq.tsv", 300)
    options = ["--base", asking, "--dimensions", "16,8", "--force"]
    done, result, output = run(data, budget="60steps", options=options)
    assert done.returncode == 0, done.stdout + done.stderr
    tried = {route.name for route in result.routes if route.tried}
    assert {"pairs from base", "pairs from asks"} <= tried
    assert f"--base {base} --base {asking} " in result.command
    known = {base.name: base for base in result.bases}
    assert set(known) == {str(base), str(asking)}
    assert (known[str(base)].prompts, known[str(asking)].prompts) == (False, True)
    strongest = max(result.bases, key=lambda base: base.score)
    assert strongest.compared
    assert result.base == strongest.name
    best = next(run for run in result.runs if run.is_best)
    assert result.started_from == str(asking if best.route.endswith("from asks") else base)
    assert best.difference == pytest.approx(best.score - strongest.score)
    assert [measured.name for measured in result.by_dimension] == ["32", "16", "8"]
    whole = result.by_dimension[0]
    assert (whole.before, whole.after) == pytest.approx((result.total.before, result.total.after))
    assert len({measured.after for measured in result.by_dimension}) > 1
    assert Encoder.load(output).dimensions == (32, 16, 8)
    recipes = {path.name: path.read_text("utf-8") for path in (tmp_path / "model.fit" / "recipes").iterdir()}
    assert all(("asymmetric: true" in text) == ("asks" in name) for name, text in recipes.items())
    assert all(f"base: {asking if 'asks' in name else base}\n" in text for name, text in recipes.items())
    card, page = (output / "README.md").read_text("utf-8"), (tmp_path / "model.fit" / "report.html").read_text("utf-8")
    assert "truncate_dim=8" in card
    for text in ("Dimensions", "Bases", "8 dimensions", "the winner is compared with this one"):
        assert text in page


@pytest.mark.long
def test_a_single_base_keeps_its_prompts(asking, tmp_path):
    """The trained model says what sentence-transformers' encode_query and encode_document put before a text."""
    data = small_base.pairs(tmp_path / "faq.tsv", 200)
    done = fit(data, tmp_path / "model", base=str(asking), budget="20steps", force=True)
    config = json.loads((tmp_path / "model" / "config_sentence_transformers.json").read_text("utf-8"))
    assert config["prompts"]["query"] == "bano belo "
    theirs = SentenceTransformer(str(done.model)).encode_query(["dilo"])
    assert theirs == pytest.approx(done.encoder.encode(["dilo"], role="query"), abs=1e-5)
    assert done.encoder.encode(["dilo"]) != pytest.approx(theirs, abs=1e-3)
    assert "encode_query" in (tmp_path / "model" / "README.md").read_text("utf-8")
    assert "Queries and documents have the prompts" in (tmp_path / "model.fit" / "report.md").read_text("utf-8")


@pytest.mark.long
def test_label_columns_and_languages_learned_by_adapters(run, tmp_path, monkeypatch):
    monkeypatch.setattr("sentloom.fitting.fit.load_bases", partial(load_bases, large=1))
    data = small_base.write_rows(tmp_path / "tickets.tsv", "message intent team language", labelled())
    options = ["--columns", "text=message,label=intent+team", "--force"]
    done, result, output = run(data, budget="40steps", options=options)
    assert done.returncode == 0, done.stdout + done.stderr
    names = [f"{data}: intent", f"{data}: team"]
    deciding = [measured for measured in result.measures if measured.part == "deciding"]
    assert [measured.name for measured in deciding] == [source.name for source in result.sources] == names
    assert all({"map", "probe"} <= set(measured.also) for measured in deciding)
    assert result.sources[0].rows.test == result.sources[1].rows.test  # the same texts
    assert "mix: 1.0" in result.recipe
    assert {measured.name for measured in result.by_language} == {
        f"{name}, {code}" for name in names for code in ("de", "pl")
    }
    assert sum(measured.items for measured in result.by_language[:2]) == deciding[0].items
    assert "have 700 sentences in common" not in done.stdout
    assert "lora:" in result.recipe
    with safe_open(output / "model.safetensors", "pt") as file:
        assert not [name for name in file.keys() if "lora" in name]  # noqa: SIM118
    assert result.hashes["model"] != result.hashes["base"]
    report = (tmp_path / "model.fit" / "report.md").read_text("utf-8")
    for text in (
        "the nearest training row has the same label (tickets.tsv: team)",
        "linear probe",
        "German: ",
        "LoRA",
    ):
        assert text in report


@pytest.mark.long
def test_label_columns_of_rows_in_memory(base, tmp_path):
    import pandas as pd

    rows = pd.DataFrame(labelled(), columns=["message", "intent", "team", "language"])
    columns = {"text": "message", "label": ["intent", "team"]}
    done = fit(rows, tmp_path / "model", base=str(base), budget="20steps", columns=columns, force=True)
    assert list(done.scores)[:2] == ["the DataFrame: intent", "the DataFrame: team"]
    assert "mix: 1.0" in done.result.recipe
    assert len(done.result.by_language) == 4


@pytest.mark.long
def test_pairs_in_two_languages_also_train_in_batches_of_one(base, tmp_path):
    texts = small_base.sentences(640, 8)
    rows = [(text, small_base.other(text), ("pl", "de")[number % 2]) for number, text in enumerate(texts)]
    data = small_base.write_rows(tmp_path / "faq.tsv", "question answer language", rows)
    done = fit(data, tmp_path / "model", base=str(base), budget="120steps", force=True)
    (run, *_) = (run for run in done.result.runs if run.route == "pairs by language")
    assert run.score is not None
    (recipe,) = (tmp_path / "model.fit" / "recipes").glob("pairs-by-language-1-*.yaml")
    assert "mix: 1.0" in recipe.read_text("utf-8")
    files = sorted((tmp_path / "model.fit" / "data").glob("1-pairs-train-language-*.parquet"))
    assert all(str(file) in recipe.read_text("utf-8") for file in files)
    known = {text: code for text, _, code in rows}
    assert {tuple({known[text] for text in read(file)["anchor"]}) for file in files} == {("de",), ("pl",)}
