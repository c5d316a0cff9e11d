"""The command, as a user runs it: real processes, real files, what it prints and how it exits."""

import json
import os
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from sentloom.encoder import Encoder
from sentloom.encoder.locate import embedded_folder
from sentloom.errors import MissingPart
from sentloom.fitting.result import FitResult
from tests.fitting.small_base import build_base

ENVIRONMENT = {**os.environ, "HF_HUB_OFFLINE": "1", "COLUMNS": "500"}


def process(*arguments, cwd=None):
    """A run in a process of its own."""
    command = [sys.executable, "-c", "from sentloom.cli import main; main()", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=ENVIRONMENT)


@pytest.fixture(scope="module", autouse=True)
def embedded_encoder():
    try:
        embedded_folder()
    except MissingPart:
        pytest.skip("the embedded encoder is not installed: pip install 'sentloom[embedded]'")


@pytest.fixture
def faq(tmp_path):
    path = tmp_path / "faq.csv"
    path.write_text(
        "question,answer,team\n"
        "How do I reset my password?,Open the settings and choose a new one.,it\n"
        "Where is the canteen?,On the ground floor.,office\n"
        "How do I reset my password?,Open the settings and choose a new one.,it\n"
    )
    return path


def test_help_is_quick_to_import_and_names_every_verb():
    script = "import sys; sys.argv = ['sentloom', '--help']\nfrom sentloom.cli import main\ntry: main()\nfinally: print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=ENVIRONMENT)
    assert all(
        verb in done.stdout
        for verb in (
            "check",
            "clean",
            "views",
            "translate",
            "encode",
            "fit",
            "compare",
            "search",
            "evaluate",
            "geometry",
            "mine",
            "train",
            "init-model",
            "vocabulary",
            "synthesize",
            "recipes",
            "demo",
        )
    )
    assert done.stdout.splitlines()[-1] == "False"  # torch was not imported


@pytest.mark.parametrize(
    "verb",
    (
        "fit check clean views translate encode search evaluate geometry mine "
        "synthesize train compare init-model vocabulary recipes demo"
    ).split(),
)
def test_every_verb_has_help(sentloom, verb):
    done = sentloom(verb, "--help")
    assert done.returncode == 0
    assert "--help" in done.stdout


def test_check_says_what_the_file_holds(sentloom, faq, tmp_path):
    done = sentloom("check", faq, "-o", tmp_path / "found.json")
    assert done.returncode == 0, done.stderr
    assert "pairs, 3 rows (anchor = 'question', positive = 'answer')" in done.stdout
    assert "unused columns: team" in done.stdout
    found = json.loads((tmp_path / "found.json").read_text())
    assert (found["shape"], found["rows"], found["duplicate_rows"]) == ("pairs", 3, 1)
    assert found["lengths"][0]["unit"] == "tokens"
    # [CLS] how do i reset my password ? [SEP]
    assert found["lengths"][0]["distribution"]["most"] == 9


def test_check_finds_leaks_and_says_so_by_its_exit_code(sentloom, faq, tmp_path):
    (tmp_path / "eval.tsv").write_text("sentence1\tsentence2\tscore\nwhere is THE canteen\tIt rains.\t1.0\n")
    done = sentloom("check", faq, "--against", tmp_path / "eval.tsv")
    assert done.returncode == 1, done.stderr
    assert "1 of 2 evaluation sentences" in done.stdout
    assert "eval.tsv, line 2" in done.stdout
    assert "faq.csv, line 3" in done.stdout


def test_clean_writes_what_is_left_and_says_what_is_gone(sentloom, faq, tmp_path):
    done = sentloom("clean", faq, "-o", tmp_path / "clean.tsv")
    assert done.returncode == 0, done.stderr
    assert "3 rows, 2 kept" in done.stdout
    assert (tmp_path / "clean.tsv").read_text().splitlines() == [
        "anchor\tpositive",
        "How do I reset my password?\tOpen the settings and choose a new one.",
        "Where is the canteen?\tOn the ground floor.",
    ]


def test_encode_then_search_with_and_without_its_vectors(sentloom, faq, tmp_path):
    assert "Choose one, as in --column anchor" in sentloom("encode", faq, "-o", tmp_path / "v.npy").stderr
    done = sentloom("encode", faq, "-o", tmp_path / "v.npy", "--column", "positive")
    assert done.returncode == 0, done.stderr
    assert np.load(tmp_path / "v.npy").shape == (3, 384)
    query = ["search", faq, "I forgot my login", "--column", "positive", "-k", "3"]
    for extra in ([], ["--vectors", tmp_path / "v.npy"]):
        done = sentloom(*query, *extra)
        assert done.returncode == 0, done.stderr
        assert done.stdout.index("Open the settings") < done.stdout.index("On the ground floor")
        assert "line 2  Open the settings" in done.stdout


def test_bad_data_is_named_by_file_and_line_with_exit_code_2(tmp_path):
    (tmp_path / "bad.csv").write_bytes(b"sentence1,sentence2,score\na,b,1\nc,d,x\ne,f\n")
    done = process("encode", tmp_path / "bad.csv", "-o", tmp_path / "v.npy")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "bad.csv, line 3" in done.stderr
    assert "bad.csv, line 4" in done.stderr
    assert not (tmp_path / "v.npy").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["encode", "nowhere.txt", "-o", "v.npy"],
        ["evaluate", "no/such/model", "--data", "nowhere"],
        ["search", "texts.txt", "a query", "--model", "nowhere"],
        ["encode", "texts.txt", "-o", "v.npy", "--pooling", "average"],
        ["evaluate", "embedded", "--suite", "unknown"],
        ["evaluate", "embedded", "--suite", "unknown", "--cache-size", "inf"],
        ["evaluate", "embedded", "--mteb", "STSBenchmark", "-o", "scores.json"],
        ["evaluate", "embedded", "--mteb", "STSBenchmark", "-o", "here", "-o", "there"],
        ["check", "texts.txt", "--columns", "text"],
    ],
)
def test_mistakes_end_in_a_message_and_exit_code_2(sentloom, tmp_path, monkeypatch, arguments):
    (tmp_path / "texts.txt").write_text("One line.\n")
    monkeypatch.chdir(tmp_path)
    done = sentloom(*arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) >= 2
    assert [path.name for path in tmp_path.iterdir() if path.name != "scratch"] == ["texts.txt"]


def test_evaluate_prints_a_table_writes_files_and_names_what_is_missing(sentloom, tmp_path):
    (tmp_path / "sts").mkdir()
    rows = ["5\tA dog runs.\tA dog is running.\tx", "3\tA dog runs.\tA cat runs.\tx", "0\tA dog runs.\tStocks fell.\tx"]
    (tmp_path / "sts/STSB.test.tsv").write_text("\n".join(["score\tsentence1\tsentence2\tsubset", *rows]) + "\n")
    refused = sentloom("evaluate", "embedded", "--data", tmp_path, "-o", tmp_path / "scores.json")
    assert refused.returncode == 2
    assert "--unchecked" in refused.stderr  # 3 pairs are not the published STS-B
    files = [tmp_path / f"scores.{ending}" for ending in ("json", "md", "csv")]
    outputs = [word for file in files for word in ("-o", file)]
    done = sentloom("evaluate", "embedded", "same=embedded,embedded", "--unchecked", "--data", tmp_path, *outputs)
    assert done.returncode == 0, done.stderr
    assert "mean of the seven sets: 1 of 7 sets" in done.stdout
    assert "3 rows, but 1,379 rows are published" in done.stdout
    (suite,) = json.loads(files[0].read_text())["suites"]
    cells = suite["sets"][0]["cells"]
    assert cells["embedded"]["spearman"]["value"] == pytest.approx(100)  # the three cosines are in gold order
    assert cells["same"]["spearman"]["deviation"] == 0
    assert set(suite["missing"]) == {"STS12", "STS13", "STS14", "STS15", "STS16", "SICK-R"}
    before = files[0].read_bytes()
    sentloom("evaluate", "embedded", "same=embedded,embedded", "--unchecked", "--data", tmp_path, "-o", files[0])
    assert files[0].read_bytes() == before


@pytest.mark.long
def test_demo_ends_as_its_fit_does(sentloom, tmp_path):
    """With a base that knows no English."""
    base = build_base(tmp_path)
    packages = ("--packages", "click,jinja2,rich", "--held-out", "rich", "--budget", "10steps")
    done = sentloom("demo", *packages, "-o", tmp_path / "demo", "--model", base)
    result = FitResult.read(tmp_path / "demo" / "model.fit" / "report.json")
    assert done.returncode == {"written": 0, "refused": 3}[result.verdict], done.stderr
    assert (tmp_path / "demo" / "model").is_dir() == (result.verdict == "written")
    assert result.reason[:40] in done.stdout
    assert [source.name for source in result.sources] == [
        f"{tmp_path}/demo/{one}.parquet" for one in ("sentences", "pairs")
    ]


@pytest.mark.long
def test_demo_runs_the_main_job_on_few_packages(sentloom, tmp_path):
    """Ten steps: time for one route, which is enough for names that the encoder has never seen the like of."""
    packages = ("--packages", "click,jinja2,rich", "--held-out", "rich", "--budget", "10steps")
    done = sentloom("demo", *packages, "-o", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "will try pairs" in done.stdout
    assert "Written. Better than its base" in done.stdout
    for label in ("before", "after"):
        assert f"{label}: rich." in done.stdout  # names among the answers
    assert (tmp_path / "model.fit" / "report.html").is_file()
    assert Encoder.load(str(tmp_path / "model")).dimension == 384


def test_views_shows_originals_and_views_side_by_side_and_goes_on(sentloom, faq, tmp_path, monkeypatch):
    from tests.views.small_parts import build_wordnet

    monkeypatch.setenv("NLTK_DATA", str(tmp_path / "nltk"))
    build_wordnet(tmp_path / "nltk/corpora/wordnet")
    (tmp_path / "texts.txt").write_text("The box.\nNothing here.\nThe box.\n")
    done = sentloom("views", tmp_path / "texts.txt", "--kind", "synonyms", "--share", "1", "-o", tmp_path / "v.tsv")
    assert done.returncode == 0, done.stderr
    assert "original" in done.stdout
    assert any("The box." in line and "The case." in line for line in done.stdout.splitlines())
    assert "1 views equal to the original (kept)" in done.stdout
    written = (tmp_path / "v.tsv").read_text()
    assert written == "anchor\tpositive\nThe box.\tThe case.\nNothing here.\tNothing here.\n"
    assert list((tmp_path / ".sentloom/views").glob("*/*.arrow"))
    done = sentloom(
        "views", tmp_path / "texts.txt", "--kind", "file", "--file", tmp_path / "v.tsv", "-o", tmp_path / "w.tsv"
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "w.tsv").read_text() == written


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--kind", "rhymes"], "one of back-translation, synonyms, mask-fill, file, entailment"),
        (["--kind", "synonyms", "--beams", "3"], "beams: Extra inputs"),
        (["--kind", "mask-fill"], "model: Field required"),
        (["--kind", "mask-fill", "--model", "embedded"], "cannot fill masks"),
        (["--kind", "mask-fill", "--model", "nowhere"], "no such folder"),
        (["--kind", "entailment"], "the shape nli"),
        (["--kind", "file", "--file", "texts.txt"], "texts.txt: the file contains texts"),
        (["--pivot", "one"], "forward,backward"),
        (["--pivot", "nowhere,nowhere"], "no such folder"),
    ],
)
def test_mistakes_with_views(sentloom, tmp_path, monkeypatch, arguments, said):
    (tmp_path / "texts.txt").write_text("One line.\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    done = sentloom("views", "texts.txt", "-o", "views.tsv", *arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert said in done.stderr
    assert not (tmp_path / "views.tsv").exists()


def test_views_that_are_stopped_say_how_to_go_on(sentloom, tmp_path, monkeypatch):
    def stop(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("sentloom.views.pairs.make_missing", stop)
    monkeypatch.setattr("sentloom.views.pairs.makers_for", lambda settings: [type("Maker", (), {"identity": "none"})])
    (tmp_path / "texts.txt").write_text("One line.\n")
    done = sentloom("views", tmp_path / "texts.txt", "-o", tmp_path / "views.tsv")
    assert done.returncode != 0
    assert "Run the same command again to resume" in done.stdout


def test_mine_finds_hard_negatives_and_says_what_was_passed_over(sentloom, faq, tmp_path):
    done = sentloom("mine", faq, "-o", tmp_path / "triplets.tsv", "--margin", "-1")
    assert done.returncode == 0, done.stderr
    assert "3 pairs, 3 with hard negatives" in done.stdout
    lines = (tmp_path / "triplets.tsv").read_text().splitlines()
    assert lines[0] == "anchor\tpositive\tnegative"
    assert lines[2] == "Where is the canteen?\tOn the ground floor.\tOpen the settings and choose a new one."


def test_new_makes_a_model_that_encodes(sentloom, faq, tmp_path):
    done = sentloom(
        "init-model",
        faq,
        "-o",
        tmp_path / "tiny",
        "--family",
        "t5",
        "--vocabulary",
        "60",
        "--layers",
        "1",
        "--width",
        "32",
    )
    assert done.returncode == 0, done.stderr
    done = sentloom(
        "encode",
        faq,
        "-o",
        tmp_path / "v.npy",
        "--column",
        "anchor",
        "--model",
        tmp_path / "tiny",
        "--pooling",
        "decoder-first",
    )
    assert done.returncode == 0, done.stderr
    assert np.load(tmp_path / "v.npy").shape == (3, 32)
    assert sentloom("init-model", faq, "-o", tmp_path / "other", "--family", "gpt").returncode == 2


def test_mine_wants_pairs(sentloom, tmp_path):
    (tmp_path / "texts.txt").write_text("One line.\nAnother line.\n")
    done = sentloom("mine", tmp_path / "texts.txt", "-o", tmp_path / "t.tsv")
    assert done.returncode == 2
    assert "Expected pairs" in done.stderr


@pytest.fixture
def twins(tmp_path):
    for language, lines in {
        "en": ["The doctor recommends early screening.", "Short", "", "Two", "The dog sleeps in the garden.", "same"],
        "de": ["Der Arzt empfiehlt die Vorsorgeuntersuchung.", "Ein sehr langer Satz", "Leer", "два", *["x"] * 2],
    }.items():
        (tmp_path / f"c.{language}").write_text("\n".join(lines * 3) + "\n")
    return f"{tmp_path}/c.en+{tmp_path}/c.de"


def test_twin_files_are_checked_cleaned_and_teach_a_vocabulary(sentloom, twins, tmp_path):
    done = sentloom("check", twins)
    assert done.returncode == 0, done.stderr
    assert "15 rows (source, target)" in done.stdout
    assert "3 lines that are blank on one side" in done.stdout
    assert "tokens per word" in done.stdout
    assert "sentloom vocabulary" in done.stdout
    options = ["--length-ratio", "3", "--scripts", "Latin,Latin", "--distinct", "target"]
    done = sentloom("clean", twins, "-o", tmp_path / "clean.tsv", *options)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "clean.tsv").read_text().splitlines() == [
        "source\ttarget",
        "The doctor recommends early screening.\tDer Arzt empfiehlt die Vorsorgeuntersuchung.",
        "same\tx",
    ]
    done = sentloom("vocabulary", "embedded", twins, "-o", tmp_path / "student", "--size", "100")
    assert done.returncode == 2
    assert "no token" in done.stderr  # three times is too rare to be learned
    (tmp_path / "more.txt").write_text("Der Arzt empfiehlt die Vorsorgeuntersuchung.\n" * 9)
    done = sentloom("vocabulary", "embedded", tmp_path / "more.txt", "-o", tmp_path / "student", "--size", "100")
    assert done.returncode == 0, done.stderr
    assert "before, 1.00 tokens per word after; 0.0% of the sentences keep their tokens" in done.stdout
    assert sentloom("check", twins, "--model", tmp_path / "student").returncode == 0


def test_a_zip_file_of_twins_is_checked_and_it_says_which_is_the_source(sentloom, twins, tmp_path):
    with zipfile.ZipFile(tmp_path / "opus.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(tmp_path / "c.de", "c.en-de.de")
        archive.write(tmp_path / "c.en", "c.en-de.en")
        archive.writestr("README", "Twins")
    done = sentloom("check", tmp_path / "opus.zip")
    assert done.returncode == 0, done.stderr
    assert "opus.zip/c.en-de.en+c.en-de.de: parallel, 15 rows (source, target)" in done.stdout


@pytest.mark.parametrize("verb", ["translate", "views"])
def test_a_wrong_ending_is_told_before_the_work(verb, sentloom, tmp_path):
    (tmp_path / "texts.txt").write_text("A dog runs.\n")
    done = sentloom(verb, tmp_path / "texts.txt", "-o", tmp_path / "pairs.txt")
    assert done.returncode == 2
    assert "the extension .csv" in done.stderr
    assert [path.name for path in tmp_path.glob("*") if path.name != "scratch"] == ["texts.txt"]  # no view was made


def test_geometry_prints_numbers_and_draws(sentloom, tmp_path):
    rows = [f"{5 - i % 6}\tA dog runs {i}.\tA {'dog' if i % 6 < 3 else 'stock'} is running {i % 7}." for i in range(30)]
    (tmp_path / "pairs.tsv").write_text("\n".join(["score\tsentence1\tsentence2", *rows]) + "\n")
    out = tmp_path / "out"
    done = sentloom(
        "geometry", "embedded", "--pairs", tmp_path / "pairs.tsv", "--sweep", "--trajectory", "--tsne", "-o", out
    )
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in out.iterdir()) == sorted(
        ["align-uniform.png", "geometry.json", "layers-1.png", "trajectory.png", "tsne-1.png"]
    )
    numbers = json.loads((out / "geometry.json").read_text())["embedded"]
    assert numbers["positives"] == 5  # the rows with a score of 5: strictly above 4
    assert len(numbers["layers"]) == 7
    assert f"{numbers['alignment']:.3f}" in done.stdout


def test_geometry_takes_all_translations_for_positives(sentloom, tmp_path):
    rows = [f"The dog number {i}.\tO cão número {i}." for i in range(9)]
    (tmp_path / "parallel.tsv").write_text("\n".join(["source\ttarget", *rows]) + "\n")
    geometry = ["geometry", "embedded", "--pairs", tmp_path / "parallel.tsv", "-o", tmp_path / "out"]
    done = sentloom(*geometry)
    assert done.returncode == 0, done.stderr
    numbers = json.loads((tmp_path / "out/geometry.json").read_text())["embedded"]
    assert (numbers["positives"], numbers["sentences"]) == (9, 18)
    for option in ("--sweep", "--tsne"):
        done = sentloom(*geometry, option)
        assert done.returncode == 2
        assert "the pairs have no scores" in done.stderr
    (tmp_path / "parallel.tsv").write_text("text\nA dog.\n")
    done = sentloom(*geometry)
    assert done.returncode == 2
    assert "scored-pairs, pairs or parallel" in done.stderr
