"""The whole Portuguese demo at small scale: real translations and training, printed scores against an oracle."""

import io
import re

import numpy as np
import pytest
from rich.console import Console

from sentloom.corpus.docstrings import harvest
from sentloom.data import read
from sentloom.demo import portuguese
from sentloom.encoder import Encoder
from sentloom.encoder.locate import embedded_folder
from sentloom.errors import InputError, MissingPart
from sentloom.views.embedded_translator import EmbeddedTranslation

SMALL = [
    f"portuguese.{change}" for change in ("steps=3", "batch=8", "queue=32", "vocabulary=100", "learning_rate=1e-3")
]


@pytest.fixture(scope="module", autouse=True)
def _embedded_parts():
    try:
        embedded_folder()
        EmbeddedTranslation("pt")
    except MissingPart as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def corpus():
    return harvest(["click"], [], workers=1)


def run(folder, corpus, held_out=portuguese.HELD_OUT):
    """Run the demo and return its output."""
    page = io.StringIO()
    console = Console(file=page, width=300)
    show = lambda part: console.print(part, highlight=False, markup=False)  # noqa: E731
    portuguese.run(folder, corpus, 24, show, SMALL, held_out)
    return page.getvalue()


def accuracy(model, pairs):
    """Compute the share of sentences whose nearest neighbour is their translation, in both directions."""
    vectors = [Encoder.load(model).encode(pairs.column(name).to_pylist()) for name in ("source", "target")]
    cosines = np.float64(vectors[0]) @ np.float64(vectors[1]).T
    own = np.arange(len(cosines))
    return 50 * ((cosines.argmax(axis=1) == own).mean() + (cosines.argmax(axis=0) == own).mean())


@pytest.mark.long
def test_the_demo_translates_trains_and_shows_scores(corpus, tmp_path):
    said = run(tmp_path / "demo", corpus, held_out=8)
    train, test = (read(tmp_path / f"demo/{name}.tsv") for name in ("train", "test"))
    assert (len(train), len(test)) == (24, 8)
    assert not set(train.column("source").to_pylist()) & set(test.column("source").to_pylist())
    model = tmp_path / "demo/run/model"
    for label, one in (("before", "embedded"), ("after", model)):
        (line,) = (line.split() for line in said.splitlines() if line.split()[:1] == [label])
        assert line[1] == f"{accuracy(one, test):.1f}%"
    page = " ".join(said.split())  # long titles are wrapped
    asked = [text for text in test.column("target").to_pylist() if f"“{text}”" in page]
    assert len(asked) == portuguese.EXAMPLES
    for label in ("before", "after"):  # the corpus has these words too, but not with a verdict behind them
        assert len(re.findall(rf"\b{label}, (?:right|wrong)\b", said)) == portuguese.EXAMPLES
    assert f"--model {model}" in page


def test_too_few_sentences_are_refused(corpus, tmp_path):
    with pytest.raises(InputError, match="Install more packages"):
        run(tmp_path / "demo", corpus)
    assert not (tmp_path / "demo").exists()
