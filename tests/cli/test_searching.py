"""`sentloom search`: in a file, with a model in its own corpus, typed at a prompt, or line by line from a pipe."""

import io
import os
import pty
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sentloom.encoder import Encoder
from tests.encoder.small_models import SENTENCES, build_model_folder

ENVIRONMENT = {**os.environ, "HF_HUB_OFFLINE": "1", "COLUMNS": "200", "OMP_NUM_THREADS": "1"}
COMMAND = [sys.executable, "-c", "from sentloom.cli import main; main()", "search"]


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return build_model_folder("bert", tmp_path_factory.mktemp("models") / "bert")


@pytest.fixture
def model(tmp_path, bert):
    """A model as `fit` leaves it: a sentence-transformers folder, and beside it a corpus."""
    Encoder.load(bert).save(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def corpus(model):
    path = model.with_name("model.fit") / "corpus.parquet"
    path.parent.mkdir()
    pq.write_table(pa.table({"text": SENTENCES, "of": ["1"] * len(SENTENCES)}), path)
    return path


@pytest.fixture
def texts(tmp_path):
    (tmp_path / "texts.txt").write_text("\n".join(SENTENCES[:4]) + "\n", "utf-8")
    return tmp_path / "texts.txt"


@pytest.fixture
def ask(monkeypatch, sentloom):
    """The command with something in its standard input."""

    def run(piped, *arguments):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(piped)))
        return sentloom("search", *arguments)

    return run


def answers(output):
    """For each query the texts that were found, best first; a sentence is nearest to itself."""
    found = {}
    for line in output.splitlines():
        if line.strip().startswith("“"):
            texts = found.setdefault(line.strip().strip("“”"), [])
        elif found and line.strip():
            texts += [sentence for sentence in SENTENCES if line.rstrip().endswith(sentence)][:1]
    return found


@pytest.mark.long
def test_a_pipe_is_answered_line_by_line_in_a_process_of_its_own(model, corpus):
    piped = f"{SENTENCES[5]}\n\n{SENTENCES[7]}\n"
    command = [*COMMAND, str(model), "-k", "2"]
    done = subprocess.run(command, input=piped, capture_output=True, text=True, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    found = answers(done.stdout)
    assert [(query, texts[0], len(texts)) for query, texts in found.items()] == [
        (SENTENCES[5], SENTENCES[5], 2),
        (SENTENCES[7], SENTENCES[7], 2),
    ]
    assert "search>" not in done.stdout
    assert "what" in done.stdout.splitlines()[0]  # it says what it looks in


@pytest.mark.long
def test_a_terminal_gets_a_prompt_and_an_empty_line_ends(model, corpus):
    ours, theirs = pty.openpty()
    os.write(ours, f"{SENTENCES[0]}\n\nnever asked\n".encode())
    done = subprocess.run([*COMMAND, str(model)], stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, env=ENVIRONMENT)
    os.set_blocking(ours, False)
    shown = os.read(ours, 100_000).decode()
    os.close(ours)
    os.close(theirs)
    assert done.returncode == 0, done.stderr.decode()
    assert shown.count("search> ") == 2
    assert "“never asked”" not in shown
    assert answers(shown)[SENTENCES[0]][0] == SENTENCES[0]


def test_a_model_looks_in_the_corpus_beside_it_or_where_it_is_told_to(model, corpus, texts, ask, sentloom, monkeypatch):
    done = sentloom("search", f"{model}/", SENTENCES[6])
    assert done.returncode == 0, done.stderr
    assert answers(done.stdout)[SENTENCES[6]][0] == SENTENCES[6]
    assert f"{corpus}: texts, 8 rows" in done.stdout
    assert "unused" not in done.stdout  # the column `of` is the fit's own
    done = ask(SENTENCES[2].encode(), model, "--in", texts)
    assert answers(done.stdout)[SENTENCES[2]][0] == SENTENCES[2]
    assert "texts, 4 rows" in done.stdout
    monkeypatch.chdir(model)
    assert answers(sentloom("search", ".", "Yes").stdout)["Yes"][0] == "Yes"


def test_what_is_neither_data_nor_a_model(sentloom):
    done = sentloom("search", "nosuch", "Yes")
    assert done.returncode == 2
    assert "nosuch: no such file or folder" in done.stderr
    assert "or a model folder" in " ".join(done.stderr.split())


def test_a_model_without_a_corpus_looks_in_docstrings_and_reads_them_once(model, ask, monkeypatch):
    monkeypatch.setattr("sentloom.data.corpus.docstrings.DEFAULT_PACKAGES", ("click",))
    done = ask(b"Outputs the message.\n", model)
    assert done.returncode == 0, done.stderr
    assert "there is no model.fit/corpus.parquet beside" in done.stdout
    assert "click." in done.stdout[done.stdout.index("“") :]  # the names that the summaries belong to
    again = ask(b"Outputs the message.\n", model)
    assert "once" in done.stdout
    assert "once" not in again.stdout
    assert again.stdout[again.stdout.index("“") :] == done.stdout[done.stdout.index("“") :]


def test_vectors_are_made_once(model, corpus, sentloom, monkeypatch):
    first = sentloom("search", model, "Yes")
    encoded = []
    encode = Encoder.encode

    def counted(self, texts, **options):
        encoded.extend(texts)
        return encode(self, texts, **options)

    monkeypatch.setattr(Encoder, "encode", counted)
    assert sentloom("search", model, "Yes").stdout == first.stdout
    assert encoded == ["Yes"]  # the query alone
    sentloom("search", model, "Yes", "--pooling", "max")
    assert len(encoded) == 1 + len(SENTENCES) + 1


def test_data_with_a_config_file_of_its_own_is_data(bert, tmp_path, sentloom):
    (tmp_path / "data").mkdir()
    (tmp_path / "data/config.json").write_text('{"made by": "hand"}')
    (tmp_path / "data/texts.txt").write_text("\n".join(SENTENCES))
    done = sentloom("search", tmp_path / "data", "Yes", "--model", bert)
    assert done.returncode == 0, done.stderr
    assert answers(done.stdout)["Yes"][0] == "Yes"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["texts.txt", "a query", "--in", "texts.txt"], "texts.txt is not a model folder"),
        (["model", "a query", "--model", "embedded"], "one model"),
        (["model", "a query", "--in", "nowhere.txt"], "nowhere.txt"),
        (["nowhere/model"], "nowhere/model"),
        (["texts.txt", "a query", "--model", "nowhere"], "nowhere"),
    ],
)
def test_mistakes_end_in_a_message_and_exit_code_2(arguments, said, model, texts, sentloom, monkeypatch):
    monkeypatch.chdir(texts.parent)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    done = sentloom("search", *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) >= 2
    assert "Traceback" not in done.stderr


def test_a_pipe_that_is_no_text_is_named_by_its_line(model, corpus, ask):
    done = ask("Yes\nGarten läuft\n".encode("latin-1"), model)
    assert done.returncode == 2
    assert "standard input, line 2" in done.stderr
    assert "“Yes”" in done.stdout  # what came before was answered
