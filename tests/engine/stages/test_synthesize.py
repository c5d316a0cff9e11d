"""Stages that make a text-to-text model or data: GenSE as a recipe, made once, kept, gone on with, and checked for leaks."""

import json
import os
import signal
import time

import pyarrow.parquet as pq
import pytest
import yaml
from accelerate import Accelerator

from sentloom.data import read
from sentloom.data.shapes import Shape
from sentloom.encoder import Encoder
from sentloom.encoder.tokens import Prompt
from sentloom.engine.evaluation_sets import find_evaluation_set
from sentloom.engine.rows import read_data, share_of
from sentloom.engine.runner import prepare
from sentloom.errors import InputError
from sentloom.lab.forecast import forecast
from sentloom.lab.recipe import read_recipe
from sentloom.writing.chat import TokenLimit
from sentloom.writing.text_to_text import TextToText
from tests.writing.chat_server import chat_server
from tests.writing.small_synthesizers import SHORT, TRIPLETS, build_small_t5

FEW = {"batch": 4, "steps": 3, "learning_rate": 1e-3, "log_every": 1}
ANCHORS = [anchor for anchor, _, _ in TRIPLETS]
WARM = {"name": "warm", "method": "denoising", "model": "t5", "data": "raw.txt", **FEW}
WRITER = {
    "name": "writer",
    "method": "synthesizer",
    "model": "stage:warm",
    "data": "nli.tsv",
    "wording": SHORT.model_dump(mode="json"),
    "held_out": 0.1,
    "every": 2,
    "measured": 8,
    **FEW,
}
WRITTEN = {
    "name": "written",
    "method": "synthesize",
    "model": "stage:writer",
    "data": "raw.txt",
    "rows": 20,
    "block": 8,
    "length": 6,
    "threshold": 0.0,
    "finished": False,  # random weights do not end a text
}
SYNTHETIC = {"name": "synthetic", "method": "contrastive", "data": "stage:written", **FEW}
NLI = {"name": "nli", "method": "contrastive", "data": "nli.tsv", **FEW}
GENSE = (WARM, WRITER, WRITTEN, SYNTHETIC, NLI)


@pytest.fixture(scope="session")
def t5(tmp_path_factory):
    return build_small_t5(tmp_path_factory.mktemp("t5") / "model")


@pytest.fixture
def loom(work, bert, t5):
    """Writes a recipe beside the data; runs it."""
    (work / "t5").symlink_to(t5)
    (work / "raw.txt").write_text("\n".join(ANCHORS[:40]) + "\n")
    rows = ["anchor\tpositive\tnegative", *(f"{a}\t{p}\t{n}" for a, p, (n,) in TRIPLETS[40:120])]
    (work / "nli.tsv").write_text("\n".join(rows) + "\n")
    return Loom(work, bert)


class Loom:
    def __init__(self, folder, base):
        self.folder, self.base, self.told = folder, base, []

    def recipe(self, *stages, **keys):
        values = {"base": str(self.base), "pooling": "mean", "evaluate": {"sets": ["scored.tsv"]}, **keys}
        path = self.folder / "gense.yaml"
        path.write_text(yaml.safe_dump({**{k: v for k, v in values.items() if v is not None}, "stages": [*stages]}))
        return path

    def plan(self, *stages, **keys):
        return read_recipe(self.recipe(*stages, **keys)).resolve()

    def run(self, *stages, out="out", **keys):
        (runner,) = prepare([self.plan(*stages, **keys)], self.folder / out, Accelerator(cpu=True), self.told.append)
        return runner.run()

    def files(self, out="out"):
        root = self.folder / out / "stages"
        return {str(path.relative_to(root)): path.stat().st_mtime_ns for path in root.rglob("*") if path.is_file()}

    def made(self, pattern, out="out"):
        (place,) = (self.folder / out / "stages").glob(pattern)
        return place


def without_times(results):
    return [
        {key: value for key, value in record.items() if key not in ("seconds", "outcome")}
        for record in results[0].stages
    ]


def candidates_of(ledger):
    return [row for block in sorted(ledger.glob("blocks/0*")) for row in pq.read_table(block).to_pylist()]


def anchors_of(place):
    return pq.read_table(place / "triplets.parquet").column("anchor").to_pylist()


def test_all_stages_once_for_all_seeds_and_another_threshold_writes_nothing_anew(loom):
    first = loom.run(*GENSE, seeds=[1, 2])
    assert [[record["stage"] for record in result.stages if not record["once"]] for result in first] == [
        ["synthetic", "nli"]
    ] * 2
    warm, writer, written, synthetic, _ = first[0].stages
    assert first[0].stages[:3] == first[1].stages[:3]
    assert TextToText.load(loom.made("warm-*") / "model").sha256 == warm["fingerprint"]
    assert (writer["input"], written["input"]) == (warm["fingerprint"], writer["fingerprint"])
    assert set(writer["held_out"]) == {"before", "after"}
    place = loom.made(f"written-{written['key']}")
    assert set(anchors_of(place)) <= set(ANCHORS[:20])
    assert synthetic["data"]["sha256"] == read(place / "triplets.parquet").sha256
    assert synthetic["data"]["rows"] == written["triplets"] == len(anchors_of(place))
    model = TextToText.load(loom.made("writer-*") / "model")
    assert (model.wording, model.sha256) == (SHORT, writer["fingerprint"])
    # again: nothing is touched
    files = loom.files()
    assert loom.run(*GENSE, seeds=[1, 2]) == first
    assert loom.files() == files
    # another threshold: filtered anew from the same ledger, what was trained before it stays
    scores = [row["score"] for row in candidates_of(loom.made("written-ledger-*"))]
    middle = sorted(scores)[len(scores) // 2]
    stages = [{**stage, "threshold": middle} if stage is WRITTEN else stage for stage in GENSE[:3]]
    (fewer,) = loom.run(*stages)
    assert fewer.stages[2]["triplets"] < written["triplets"]
    assert sum(kind["kept"] for kind in fewer.stages[2]["kinds"].values()) <= sum(score >= middle for score in scores)
    same = {name: when for name, when in loom.files().items() if name in files and "ledger" not in name}
    assert same == {name: when for name, when in files.items() if "ledger" not in name}
    blocks = {name: when for name, when in loom.files().items() if "/blocks/" in name}
    assert blocks == {name: when for name, when in files.items() if "/blocks/" in name}
    assert anchors_of(place)  # of the other threshold, still there


@pytest.mark.long
def test_with_more_rows_the_ledger_grows(loom):
    loom.run(WARM, WRITER, WRITTEN)
    blocks = {name: when for name, when in loom.files().items() if "/blocks/" in name}
    (more,) = loom.run(WARM, WRITER, {**WRITTEN, "rows": 40})
    assert more.stages[2]["sources"] == 40
    assert {name: when for name, when in loom.files().items() if name in blocks and "000002" not in name} == {
        name: when for name, when in blocks.items() if "000002" not in name
    }


@pytest.mark.long
def test_a_run_that_was_killed_while_it_wrote_goes_on(loom):
    stages = (WARM, WRITER, {**WRITTEN, "block": 2})
    whole = loom.run(*stages, out="whole", base=None)
    child = os.fork()
    if not child:
        loom.run(*stages, base=None)
        os._exit(0)
    while len(list(loom.folder.glob("out/stages/written-ledger-*/blocks/0*"))) < 2:
        assert os.waitpid(child, os.WNOHANG)[0] == 0, "it ended before it could be killed"
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert not list(loom.folder.glob("out/stages/written-*/triplets.parquet"))
    before = {name: when for name, when in loom.files().items() if "/blocks/0" in name or name.startswith("w")}
    kept = [name for name in before if name.startswith(("warm", "writer"))]
    again = loom.run(*stages, base=None)
    assert {name: loom.files()[name] for name in kept} == {name: before[name] for name in kept}
    assert without_times(again) == without_times(whole)
    uninterrupted, resumed = (loom.made("written-[!l]*", out) / "triplets.parquet" for out in ("whole", "out"))
    assert uninterrupted.read_bytes() == resumed.read_bytes()


@pytest.mark.long
def test_the_command_tells_what_was_made_and_where_the_model_is(loom, sentloom):
    out = loom.folder / "out"
    recipe = loom.recipe({**WRITER, "model": "t5"}, WRITTEN, base=None, pooling=None, title="Small")
    dry = sentloom("lab", "train", recipe, "-o", out, "--dry-run")
    assert dry.returncode == 0, dry.stderr
    lines = [line.split() for line in dry.stdout.splitlines()]
    assert any(line[:4] == ["written", "synthesize", "texts", "20"] for line in lines)
    assert any(line[:3] == ["writer", "synthesizer", "triplets"] and line[4:6] == ["4", "3"] for line in lines)
    assert not out.exists()
    done = sentloom("lab", "train", recipe, "-o", out)
    assert done.returncode == 0, done.stderr
    results = json.loads((out / "results.json").read_text())
    (run,) = results["runs"]
    writer, written = run["stages"]
    after = writer["held_out"]["after"]
    for said in (
        f"accuracy {writer['held_out']['before']['accuracy']:.1%} -> {after['accuracy']:.1%}",
        f"-> {after['perplexity']:.1f} on {after['rows']} held-out",
        f"{written['triplets']} triplets and {written['pairs']} pairs of 20 texts",
    ):
        assert said in " ".join(done.stdout.split())
        assert said in (out / "results.md").read_text()
    assert f"written: {out / 'model'}" in done.stdout
    assert TextToText.load(out / "model").sha256 == writer["fingerprint"]
    assert read_recipe(out / "recipe.yaml").resolve() == read_recipe(recipe).resolve()
    files = loom.files()
    assert sentloom("lab", "train", out / "recipe.yaml", "-o", out).returncode == 0
    assert loom.files() == files


@pytest.mark.long
def test_a_look_ahead_lets_sentences_stand_for_what_will_be_written(loom):
    pairs = {**SYNTHETIC, "name": "pairs", "data": ["stage:written/pairs", "pairs.tsv"]}
    plan = loom.plan(*GENSE, pairs, prompt={"suffix": " so"})
    forecasts = forecast(plan, Accelerator(cpu=True))
    assert [(ahead.stage, ahead.rows, ahead.shape, ahead.steps) for ahead in forecasts[:1] + forecasts[2:]] == [
        ("warm", 40, Shape.TEXTS, 3),
        ("written", 20, Shape.TEXTS, 0),
        ("synthetic", 20, Shape.TRIPLETS, 3),
        ("nli", 80, Shape.TRIPLETS, 3),
        ("pairs", 44, Shape.PAIRS, 3),
    ]
    assert (forecasts[1].shape, forecasts[1].steps) == (Shape.TRIPLETS, 3)
    assert 60 < forecasts[1].rows < 80  # the others are held out
    assert [bool(ahead.note) for ahead in forecasts] == [True, True, True, True, False, True]
    assert not (loom.folder / "out").exists()


def test_leaks_into_raw_text_are_refused_or_dropped_and_stay_out_of_what_is_written(loom):
    (loom.folder / "scored.tsv").write_text(
        f"sentence1\tsentence2\tscore\n{ANCHORS[3].upper()}\tother\t1\nsome\tmore\t2\n"
    )
    stages = ({**WRITER, "model": "t5"}, WRITTEN)
    with pytest.raises(InputError, match=r"stage written, .*raw\.txt, line 4(.|\n)*drop_leaks: true"):
        loom.run(*stages)
    assert not (loom.folder / "out").exists()
    dropped = loom.run(stages[0], {**WRITTEN, "drop_leaks": True}, SYNTHETIC)[0]
    assert not dropped.transductive
    assert ANCHORS[3] not in anchors_of(loom.made("written-[!l]*"))
    assert dropped.stages[1]["data"]["skipped"]["rows with sentences of the evaluation sets"] == 1


@pytest.mark.long
def test_what_a_synthesizer_wrote_of_leaks_is_refused_or_dropped(loom):
    (loom.folder / "scored.tsv").write_text(
        f"sentence1\tsentence2\tscore\n{ANCHORS[3].upper()}\tother\t1\nsome\tmore\t2\n"
    )
    stages = ({**WRITER, "model": "t5"}, WRITTEN)
    with pytest.raises(InputError, match="stage synthetic, "):
        loom.run(stages[0], {**WRITTEN, "transductive": True}, SYNTHETIC)
    told = loom.run(stages[0], {**WRITTEN, "transductive": True}, {**SYNTHETIC, "drop_leaks": True})[0]
    assert told.transductive  # the synthesizer read it


@pytest.mark.long
def test_pairs_alone_and_a_filter_that_keeps_nothing(loom):
    def expected(rows, least):
        """Sources whose entailment alone is good, and those that have both; each has one of either kind."""
        good = [row["score"] >= least and bool(row["text"]) and row["text"] != row["source_text"] for row in rows]
        both = list(zip(good[::2], good[1::2], strict=True))
        return both.count((True, False)), both.count((True, True))

    def ledger_with(wording):
        writer = {**WRITER, "model": "t5", "wording": wording, "steps": 1, "learning_rate": 1e-9}
        key = loom.run(writer, WRITTEN, base=None)[0].stages[0]["key"]
        (place,) = loom.folder.glob("out/stages/written-ledger-*")
        rows = candidates_of(place)
        assert [row["kind"] for row in rows[:2]] == ["entailment", "contradiction"]
        place.rename(loom.folder / f"ledger-{key}")
        return writer, rows

    # An untrained judge leans to one side: one of the two ways to call it finds good entailments.
    words = SHORT.model_dump(mode="json")
    both = [ledger_with(words | {"true": a, "false": b}) for a, b in (("true", "false"), ("false", "true"))]
    least, writer, rows = max(
        ((row["score"], writer, rows) for writer, rows in both for row in rows),
        key=lambda case: expected(case[2], case[0])[0],
    )
    assert expected(rows, least)[0] >= 4
    stage = {**SYNTHETIC, "data": "stage:written/pairs", "batch": 2}
    (result,) = loom.run(writer, {**WRITTEN, "threshold": least}, stage)
    assert (result.stages[1]["pairs"], result.stages[1]["triplets"]) == expected(rows, least)
    assert result.stages[2]["data"]["rows"] == result.stages[1]["pairs"]
    with pytest.raises(InputError, match=r"stage written: the filters kept no triplets of 20 sentences"):
        loom.run(writer, {**WRITTEN, "words": 99}, SYNTHETIC)


def test_a_prompt_is_part_of_the_encoder_in_all_stages_and_when_scored(loom):
    prompt = {"suffix": " sings at home"}
    (result,) = loom.run({**NLI, "data": "pairs.tsv"}, prompt=prompt)
    (plain,) = loom.run({**NLI, "data": "pairs.tsv"})
    encoder = Encoder.load(result.model)
    assert encoder.prompts == {"symmetric": Prompt("", " sings at home")}
    assert (
        encoder.tokenize(["a"])[0][1:-1] == encoder.tokens.bare(["a"])[0] + encoder.tokens.bare([" sings at home"])[0]
    )
    assert result.stages[0]["key"] != plain.stages[0]["key"]
    assert result.before == plain.before  # the base as it is
    assert result.start.endswith('prompt "{} sings at home"')
    prompted = Encoder.load(loom.base, pooling="mean", prompts=encoder.prompts)
    assert result.stages[0]["input"] == prompted.fingerprint() != plain.stages[0]["input"]
    assert result.at_start == {name: find_evaluation_set(name, None).score(prompted) for name in plain.at_start}


def test_a_share_is_part_of_a_larger_share_and_goes_by_the_first_text(loom):
    data = read(loom.folder / "nli.tsv")
    shares = [share_of(data, share).column("anchor").to_pylist() for share in (0.2, 0.4, 0.7)]
    assert 4 <= len(shares[0]) <= 30
    assert len(shares[0]) < len(shares[1]) < len(shares[2]) < len(data)
    assert set(shares[0]) < set(shares[1]) < set(shares[2])
    assert share_of(data, 1.0) is data
    stage = loom.plan({**NLI, "data_share": 0.4}).stages[0]
    assert read_data(stage).column("anchor").to_pylist() == shares[1]
    assert read_data(stage).sha256 not in (data.sha256, share_of(data, 0.2).sha256)


QUERIES = {
    **{key: value for key, value in WRITTEN.items() if key != "threshold"},
    "model": "t5", "kinds": ["query"], "encoder": "none", "round_trip": 0, "copied": 1.0, "language": False,
}  # fmt: skip


def test_queries_are_the_pairs_that_the_next_stage_trains_on(loom):
    (result,) = loom.run(QUERIES, SYNTHETIC)
    written, synthetic = result.stages
    assert (written["triplets"], written["kinds"]["query"]["written"]) == (0, 20)
    assert synthetic["data"]["rows"] == written["pairs"] > 10
    (place,) = (path for path in (loom.folder / "out/stages").glob("written-*") if "ledger" not in path.name)
    rows = candidates_of(loom.made("written-ledger-*"))
    pairs = pq.read_table(place / "pairs.parquet").to_pylist()
    assert {(pair["anchor"], pair["positive"]) for pair in pairs} <= {(row["text"], row["source_text"]) for row in rows}
    for changes in ({"kinds": ["query", "paraphrase"]}, {"shots": "pairs.tsv"}):
        assert loom.run({**QUERIES, **changes}, base=None)[0].stages[0]["key"] != written["key"]


def test_shuffled_texts_are_the_same_in_an_order_of_the_seed(loom):
    def texts(**changes):
        data, _ = loom.plan({**QUERIES, **changes}, base=None).stages[0].read([])
        return data["text"], data.sha256

    plain, shuffled, again = texts(), texts(shuffle=True), texts(shuffle=True)
    assert plain[0] == ANCHORS[:40]
    assert sorted(shuffled[0]) == sorted(plain[0])
    assert shuffled == again
    others = [plain, shuffled, texts(shuffle=True, seed=2)]
    assert len({sha for _, sha in others}) == len({tuple(texts) for texts, _ in others}) == 3


def test_the_forecast_of_queries_counts_the_vectors_of_all_texts(loom):
    alone, both = (
        forecast(loom.plan({**QUERIES, "encoder": encoder}, base=None), Accelerator(cpu=True))[0]
        for encoder in ("none", str(loom.base))
    )
    assert (alone.before, alone.rows, both.rows) == (0, 20, 20)
    assert both.before > 0


def test_a_recipe_may_name_an_endpoint(loom):
    with chat_server() as server:
        asked = {**QUERIES, "model": server.url, "writer_model": "small", "rows": 5}
        (result,) = loom.run(asked, base=None)
        assert len(server.bodies) == 5
        assert result.stages[0]["pairs"] > 0
        assert any("sending 5 texts to 127.0.0.1" in line for line in loom.told)
        assert result.stages[0]["tokens"] == server.tokens
        limited = {**asked, "name": "more", "seed": 2, "max_tokens": server.tokens + 10}  # another ledger
        with pytest.raises(TokenLimit, match=f"{server.tokens:,} of {server.tokens + 10:,} tokens are used"):
            loom.run(limited, base=None)
        with pytest.raises(InputError, match="needs a model"):
            loom.run({**asked, "writer_model": None}, base=None)
    with pytest.raises(InputError, match="max_tokens can only be given for an endpoint"):
        loom.run({**QUERIES, "max_tokens": 9}, base=None)


def test_the_forecast_of_an_endpoint_asks_nothing(loom):
    with chat_server() as server:
        asked = {**QUERIES, "model": server.url, "writer_model": "small", "encoder": "none", "requests": 4}
        ahead = forecast(loom.plan({**asked, "kinds": ["query", "entailment"]}, base=None), Accelerator(cpu=True))[0]
        assert (server.bodies, ahead.rows) == ([], 20)
    assert ahead.seconds == 20 * 3 / 4  # three requests of a second for each text, four at a time
