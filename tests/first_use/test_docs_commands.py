"""Every `sentloom` command and every Python block in the documentation is run, in a folder with small files.

The tables say how: SUBSTITUTIONS shorten budgets and put small models and files in place of large ones, NOT_RUN lists
what cannot be run here and why, SLOW what `make faults` runs. A command in NOT_RUN is still parsed, so that each of its
options exists.
"""

import contextlib
import gzip
import io
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from tests.paths import ROOT

PAGES = [ROOT / name for name in ("README.md", "SECURITY.md", "CONTRIBUTING.md", "deploy/README.md")]
PAGES += sorted((ROOT / "docs").rglob("*.md"))

SUBSTITUTIONS = [
    # budgets and sizes
    (r"--budget \S+", "--budget 2steps"),
    (r"--seeds 5", "--seeds 1"),
    (r"--vocabulary 4000", "--vocabulary 300"),
    (r"--dimensions \S+", "--dimensions 32,16"),
    (r"--layers [23]", "--layers 1"),
    # models: small ones with random weights
    (r"(?<![\w/-])embedded(?![\w/:-])", "tiny"),
    (r"\b(my-model|german/model|NEW|MODEL\b(\.\.\.)?|m/)", "model"),
    (r"\bOLD\b", "tiny"),
    (r"(?<=--writer )model/", "t5"),
    (r"sentence-t5/", "t5"),
    (r"\b(old|new)\.fit", "model.fit"),
    (r"(?<=^serve )fast/", "model"),
    (r"tiny bge-small( models/mine)?(?! --)", "tiny model"),
    (r"tiny bge-small --reranker reranker", "tiny model"),
    (r"(?<=^gate )(OLD NEW|old\.jsonl new\.csv)", "tiny model"),
    # files
    (r"^shrink model/ -o", "shrink model/ tickets.txt -o"),  # else it reads the docstrings of all packages
    (r"-o DIR", "-o out"),
    (r"\bDIR\b", "data"),
    (r"-o (CLEAN|FIXED|PAIRS)\b", "-o out.tsv"),
    (r"(?<=translate )\S+|stsb-500.txt|(?<=^lab views )tickets.txt|own\.\w+|sample.tsv|medquad.txt", "few.txt"),
    (r"(?<=encode )(DATA|FILE)\b", "texts.txt"),
    (r"(?<=vocabulary model )DATA", "en-de.tsv"),
    (r"\b(TRAIN|FILE|DATA)\b(?!\.)", "faq.csv"),
    (r"\bFILE\.tsv", "nli.tsv"),
    (r"\bEVAL\b", "texts.txt"),
    (r"\bRECIPE\b", "recipe.yaml -o run"),
    (r"data/nli/triplets.en.tsv", "triplets.tsv"),
    (r"run/stages/learn-\*/snapshots/\*", "model tiny"),
    (r"--accept-loss 0.5", "--accept-loss 50"),  # the small model loses more than a real one
    # what a command asks the user, or takes from another one
    (r"^tick (.*)", r"tick \1 --terminal"),
    (r"^serve (.*)", r"serve \1 --port 0"),
]
ADDED = {  # unless they are given
    r"^fit (?!recipe)": ["--base tiny", "--budget 2steps", "--force"],
    r"^fit recipe": ["--force"],
    r"^(encode|check|lab mine)\b|^search (?!model)": ["--model tiny"],
    r"^lab mine": ["--margin 0"],
    r"^shrink": ["--steps 2", "--against my-test.tsv"],
}
NOT_RUN = {  # by a part of the command: why, and with which option it is at least parsed
    r"--suite (sts|transfer|sentglue|multilingual|STS-B|\"Tatoeba|retrieval:)": ("data: public sets", "--help"),
    r"geometry .*--data|geometry .*--source": ("data: public sets", "--help"),
    r"lab corpus": ("data: public corpora", "--help"),
    r"SENTLOOM_DATA=|train docstrings|compare self-guided-stsb": ("hours, and public sets", "--help"),
    r"reproduce (?!.*tiny)": ("hub: the models of the papers", "--help"),
    r"--mteb": ("hub: the data of mteb", "--help"),
    r"https?://": ("endpoint", "--help"),
    r"ray": ("several processes of Ray", "--help"),
    r"synthesize": ("minutes of a language model", "--help"),
    r"--model FOLDER": ("hub: a model that translates", "--help"),
    r"models get": ("downloads", "--help"),
    r"predict |--continue": ("a model that was fitted to rows of this kind", "--help"),  # tests/fitting runs them
    r" \.\.\.": ("part of a command", "--help"),
}
VERDICTS = {"gate": (0, 1, 3)}  # exit codes that are no errors
SLOW = [
    r"^sentloom fit ",  # the folder of the quick ones is built by a fit
    r"^sentloom (shrink|export|tick|lab compare|lab geometry)",
    r"train german.yaml -o german$",
    r"reproduce|translat|stsb-500|bge-small|e5-multilingual|auto",
]


def commands(text):
    """Those in blocks, and those in the text if they have an argument."""
    text = re.sub(r"^```\w+\n.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    lines = re.sub(r"\\\n\s*", " ", text).splitlines()
    blocks = [line.strip() for line in lines if line.startswith("    ")]
    inline = re.findall(r"`([^`]+)`", "\n".join(line for line in lines if not line.startswith("    ")))
    for code in (*blocks, *(one for one in inline if re.search(r"\bsentloom\s+(?!lab\s+\S+$)(\S+\s+\S|-)", one))):
        if re.match(r"(\w+=\S+ |torchrun .* -m |cut .*; )*sentloom\s", code):
            yield " ".join(re.sub(r"^cut .*; |\s# .*", "", code).split())


COMMANDS = sorted({command for page in PAGES for command in commands(page.read_text("utf-8"))})


def listed(command):
    return [pattern for pattern in NOT_RUN if re.search(pattern, command)]


def marked(command):
    slow = not listed(command) and any(re.search(pattern, command) for pattern in SLOW)
    return pytest.param(command, marks=pytest.mark.long if slow else (), id=command[:90])


@pytest.mark.parametrize("command", [marked(command) for command in COMMANDS])
def test_a_documented_command_runs(command, sentloom, folder, monkeypatch):
    variables, _, rest = command.partition("sentloom ")
    patterns = listed(command)
    if patterns:
        words = shlex.split(rest.replace(" ...", ""))
        done = sentloom(*words, NOT_RUN[patterns[0]][1])
        assert done.returncode == 0, done.stderr
        return
    for name, value in re.findall(r"(\w+)=(\S+)", variables):
        monkeypatch.setenv(name, value)
    rest, _, standard_input = substituted(rest).partition(" < ")
    monkeypatch.setattr("sys.stdin", answers(standard_input))
    done = served(rest, monkeypatch) if rest.startswith("serve") else sentloom(*shlex.split(rest))
    skip_if_missing(done.stderr)
    assert done.returncode in VERDICTS.get(rest.split()[0], (0,)), f"{rest}\n{done.stdout}\n{done.stderr}"


def skip_if_missing(message):
    """WordNet, and what the extras bring, may not be here."""
    if "is not installed" in message:
        pytest.skip(message)


def substituted(rest):
    for pattern, replacement in SUBSTITUTIONS:
        rest = re.sub(pattern, replacement, rest)
    added = [option for pattern, options in ADDED.items() if re.search(pattern, rest) for option in options]
    return " ".join([rest, *(option for option in added if option.split()[0] not in rest)])


def answers(name):
    """What is typed: the lines of a file, or answers to `tick`, which `search` takes as queries."""
    lines = Path(name).read_bytes() if name else b"l\nr\n" * 20
    return io.TextIOWrapper(io.BytesIO(lines), encoding="utf-8")


def served(rest, monkeypatch):
    """Start a server in a process of its own, whose limits it sets for good; ask it once, and stop it as Ctrl-C does."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    monkeypatch.setenv("SENTLOOM_API_KEY", "0123456789abcdef0123")
    command = [sys.executable, "-m", "sentloom", *shlex.split(rest.replace("--port 0", f"--port {port}"))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        seen = []
        while server.poll() is None and not seen:
            time.sleep(0.1)
            address = f"http://127.0.0.1:{port}/health"
            with contextlib.suppress(OSError), urllib.request.urlopen(address, timeout=60) as answer:
                seen.append(answer.status)
        if server.poll() is None:
            server.send_signal(signal.SIGINT)
        done = subprocess.CompletedProcess(command, 0, *server.communicate(timeout=120))
    assert seen == [200], done.stderr
    return subprocess.CompletedProcess(command, server.returncode, done.stdout, done.stderr)


BLOCKS = {
    page: re.findall(r"^```python\n(.*?)^```$", page.read_text("utf-8"), re.DOTALL | re.MULTILINE) for page in PAGES
}
IN_CODE = [
    (r'(?<!CrossEncoder\.load\()"embedded"', '"tiny"'),
    (r'"embedded/pairs:numpy"', '"faq.csv"'),
    (r'(sentloom\.fit\((.*?), "model/")(, budget="\w+")?', r'\1, base="tiny", budget="2steps", force=True'),
    (r"size=8000", "size=300"),
    (r"layers=3", 'layers=1, steps=2, against="my-test.tsv"'),
    (r'"(one|two).yaml"(.*)seeds=3(.*)"DIR"', r'"\1.yaml"\2seeds=1\3"data"'),
    (r'"triplets.tsv", negatives=2', '"out.tsv", model="tiny", negatives=2, margin=-1.0'),
    (r'"sg\.steps', '"learn.steps'),
    (r'read\("tickets.txt"\)', 'read("few.txt")'),
    (r'"smollm2", pooling="last"', '"tiny"'),
    (r'"bert/"', '"tiny"'),
]
CODE_NOT_RUN = {
    "docs/extending.md": "installed and used by tests/test_extending.py",
    "docs/databases.md": "run against the databases by tests/test_databases.py",
    "docs/serving.md": "asks a running server, as tests/cli/test_serving.py does with the same client",
    "docs/synthesis.md": "minutes of a language model",
}
CODE_SLOW = {
    "README.md",
    *(f"docs/{name}.md" for name in ("compare", "cross-encoders", "data", "export", "fit", "shrink", "views")),
}


IMPORTED = "import sentloom\nfrom pathlib import Path\nfrom sentloom import Encoder"  # which a page may leave out


def marked_page(page):
    name = page.relative_to(ROOT).as_posix()
    return pytest.param(page, marks=pytest.mark.long if name in CODE_SLOW else (), id=name)


@pytest.mark.parametrize(
    "page",
    [marked_page(page) for page in BLOCKS if BLOCKS[page] and page.relative_to(ROOT).as_posix() not in CODE_NOT_RUN],
)
def test_the_python_of_a_page_runs(page, folder):
    """All blocks of a page, one after the other, with the names that the page assumes."""
    code = "\n".join(BLOCKS[page])
    for pattern, replacement in IN_CODE:
        code = re.sub(pattern, replacement, code)
    frame = [{"title": title, "body": body} for title, body in PAIRS]
    given = {
        "frame": frame,
        **dict.fromkeys(("texts", "questions"), TEXTS),
        "german_sentences": GERMAN,
    }
    try:
        exec(compile(f"{IMPORTED}\n{code}", page.name, "exec"), given)
    except Exception as error:
        skip_if_missing(str(error))
        raise


def test_every_table_is_about_the_documentation():
    pages = {page.relative_to(ROOT).as_posix() for page, blocks in BLOCKS.items() if blocks}
    assert {*CODE_NOT_RUN, *CODE_SLOW} <= pages
    runs = [command.partition("sentloom ")[2] for command in COMMANDS]
    code = ["\n".join(blocks) for blocks in BLOCKS.values()]
    unused = [pattern for pattern in (*NOT_RUN, *SLOW) if not any(re.search(pattern, one) for one in COMMANDS)]
    for table, texts in ((SUBSTITUTIONS, runs), (IN_CODE, code)):
        for pattern, replacement in table:
            changed = [re.sub(pattern, replacement, one) for one in texts]
            unused += [pattern] if changed == texts else []
            texts = changed
    assert unused == [], "no longer in the documentation"


# The folder.

ACTS = "replace reset order cancel lend repair update return".split()
THINGS = "printer router invoice password calendar keyboard projector scanner badge laptop".split()
VERBS = "austauschen umstellen bestellen absagen verleihen reparieren erneuern abgeben".split()
NOUNS = "Drucker Netzknoten Rechnungslauf Schlüssel Kalender Tastaturblock Beamer Scanner Ausweis Klapprechner".split()
CASES = [(act, thing) for act in ACTS for thing in THINGS]
TEXTS = [f"Please {act} my {thing}, the {thing} needs someone to {act} it." for act, thing in CASES]
PAIRS = [(f"How do I {act} my {thing}?", f"To {act} the {thing} ask desk {len(act + thing)}.") for act, thing in CASES]
LABELS = ("entailment", "neutral", "contradiction")
GERMAN = [f"Bitte {act}, denn unser {thing} macht Schwierigkeiten." for act in VERBS for thing in NOUNS]
TESTED = [(f"Who will {act} the {thing}?", f"Wer wird {act}, wenn der {thing} stillsteht?") for act, thing in CASES]
RECIPE = """
base: tiny
stages:
  - {name: learn, method: simcse, data: tickets.txt, steps: 2, batch: 8}
evaluate: {sets: [faq.csv]}
variants:
  opt1: {learn.temperature: 0.1}
"""


def tables():
    """Name -> header and rows; a text file has no header."""
    judged = [(PAIRS[n][0], PAIRS[n - at][1], label) for n in range(len(PAIRS)) for at, label in enumerate(LABELS)]
    scored = [(f"{a} {n}", f"{b} {n}", str(n % 6)) for n, (a, b) in enumerate((PAIRS * 18)[:1379])]  # as published
    texts, german = ([(text,) for text in some] for some in (TEXTS, GERMAN))
    return {
        **dict.fromkeys(("faq.csv", "validation.csv"), ("question,answer", PAIRS)),
        "my-test.tsv": ("question answer", TESTED),
        "tickets.csv": ("message,intent,team", [(f"Please {act} my {thing}", act, thing) for act, thing in CASES]),
        "nli.tsv": ("premise hypothesis label", judged),
        "triplets.tsv": ("anchor positive negative", [(*PAIRS[n], PAIRS[n - 1][1]) for n in range(len(PAIRS))]),
        "data/sts/STSB.test.tsv": ("sentence1 sentence2 score", scored),
        "en-de.tsv": ("source target", list(zip(TEXTS, GERMAN, strict=True))),
        **dict.fromkeys(("test.tsv", "dev.tsv"), ("source target", TESTED)),
        **dict.fromkeys(("raw.tsv", "texts.tsv"), ("text", texts)),
        **dict.fromkeys(("tickets.txt", "texts.txt", "queries.txt", "corpus.en-de.en"), ("", texts)),
        **dict.fromkeys(("faq.de.txt", "corpus.en-de.de"), ("", german)),
        "few.txt": ("", texts[:3]),
    }


@pytest.fixture
def folder(sentloom, tmp_path, monkeypatch, tmp_path_factory):
    """A copy of a folder that is built once."""
    built = tmp_path_factory.getbasetemp() / "documented"
    if not built.is_dir():
        build(built.with_suffix(".part"), sentloom, monkeypatch)
        built.with_suffix(".part").rename(built)
    shutil.copytree(built, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def build(place, sentloom, monkeypatch):
    for name, (header, rows) in tables().items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        between = "," if name.endswith("csv") else "\t"
        lines = [*([between.join(re.split(r"[ ,]", header))] if header else []), *(between.join(row) for row in rows)]
        (place / name).write_text("\n".join(lines) + "\n", "utf-8")
    (place / "sentences.en.tsv.gz").write_bytes(gzip.compress((place / "texts.tsv").read_bytes()))
    (place / "german.yaml").write_text(german(), "utf-8")
    (place / "docs").mkdir()
    pages = [f"# {question}\n\n{answer}\n" for question, answer in PAIRS[:8]]
    for number, page in enumerate(pages):
        (place / f"docs/{number}.md").write_text(page, "utf-8")
    for name in ("recipe", "one", "two"):
        (place / f"{name}.yaml").write_text(RECIPE, "utf-8")
    monkeypatch.chdir(place)
    for name, family, seed in (("tiny", "bert", 0), ("models/bge-small", "bert", 1), ("t5", "t5", 0)):
        small = f"--family {family} --seed {seed} --layers 2 --width 32 --vocabulary 300 -o {name}"
        assert sentloom("lab", "init-model", "texts.txt", *small.split()).returncode == 0
    assert sentloom(*"fit tickets.txt -o model --base tiny --budget 2steps --force".split()).returncode == 0
    for name in ("model.fit/ticks.jsonl", "anna.jsonl", "ben.jsonl"):
        monkeypatch.setattr("sys.stdin", answers(""))
        done = sentloom("tick", "model.fit", "--terminal", "-o", name)
        assert done.returncode == 0, done.stderr
    sentloom(*"check en-de.tsv -o pairs.tsv.gz".split())


def german():
    """The recipe on its page, shortened."""
    page = (ROOT / "docs/cross-lingual.md").read_text("utf-8")
    (recipe,) = re.findall(r"```yaml\n(title: .*?)```", page, re.DOTALL)
    for old, new in (("embedded", "tiny"), ("8000", "300"), ("8192", "64"), ("2000", "2"), ("batch: 64", "batch: 8")):
        recipe = recipe.replace(old, new)
    return recipe
