"""What a Ray worker does, in this process; the cluster itself is started by the long tests."""

import numpy as np
import pytest

from sentloom.encoder.device import DEFAULT, Choice, chosen
from sentloom.writing.filters import Filtering
from sentloom.writing.ledger import Ledger
from sentloom.writing.sampling import Sampling
from sentloom.writing.synthesize import Execution, Worker, lay_out_sources, synthesize
from sentloom.writing.text_to_text import TextToText
from sentloom.writing.triplets import draw
from tests.writing.ledgers import derived, raw_texts, rows_of
from tests.writing.small_synthesizers import build_small_t5

SAMPLING, LOOSE = Sampling(length=6), Filtering(threshold=0, finished=False)
ALONE = Execution(encoder="none")


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return build_small_t5(tmp_path_factory.mktemp("models") / "t5")


def test_workers_make_the_blocks_of_the_local_engine_in_any_order(model, tmp_path):
    raw = raw_texts(11)
    synthesize(raw, model, tmp_path / "whole", SAMPLING, LOOSE, Execution(block=2), rows=9, show_progress=False)
    plan = Ledger.open(tmp_path / "whole").plan
    ledger = Ledger.begin(tmp_path / "ray", plan)
    lay_out_sources(raw, ledger)
    workers = [Worker(str(ledger.folder), lambda: TextToText.load(model), ALONE, 9) for _ in range(2)]
    sources = [int(workers[n % 2]({"number": np.array([n])})["done"][0]) for n in (4, 0, 3, 3, 1, 2)]
    assert sources == [1, 2, 2, 2, 2, 2]
    draw(ledger, LOOSE, rows=9)
    assert rows_of(ledger.folder) == rows_of(tmp_path / "whole")
    assert derived(ledger.folder) == derived(tmp_path / "whole")


def test_a_worker_loads_its_model_on_the_chosen_device_and_in_the_chosen_precision(model, tmp_path):
    raw, seen = raw_texts(3), []
    synthesize(raw, model, tmp_path / "ray", SAMPLING, LOOSE, Execution(block=2), show_progress=False)
    ledger = Ledger.open(tmp_path / "ray")
    lay_out_sources(raw, ledger)

    def load():
        seen.append(chosen())
        return TextToText.load(model)

    Worker(str(ledger.folder), load, ALONE, 3, Choice("cpu", "bf16"))
    assert seen == [Choice("cpu", "bf16")]
    assert chosen() == DEFAULT


def test_a_worker_with_another_model_refuses(model, tmp_path):
    synthesize(raw_texts(2), model, tmp_path / "ledger", SAMPLING, LOOSE, show_progress=False)
    lay_out_sources(raw_texts(2), Ledger.open(tmp_path / "ledger"))
    other = build_small_t5(tmp_path / "other", width=64)
    with pytest.raises(RuntimeError, match="not the one that the ledger was started with"):
        Worker(str(tmp_path / "ledger"), lambda: TextToText.load(other), ALONE, 2)
