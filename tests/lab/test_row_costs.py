"""What a row costs: counted parameters and FLOPs against hand computation and published counts."""

import re
import shutil

import pytest
import yaml

from sentloom.lab.checkpoint_sizes import parameters, text_flops
from sentloom.lab.recipe import find_recipe, read_recipe
from sentloom.lab.row_costs import describe, row_cost

LAYERS, WIDTH, INNER = 12, 768, 3072  # of BERT-base


def test_parameters_are_those_that_sentence_t5_prints_in_table_4():
    printed = {"base": (110e6, 220e6), "large": (335e6, 770e6), "3b": (1.24e9, 3e9), "11b": (4.8e9, 11e9)}
    for size, (encoder, both) in printed.items():
        name = f"google-t5/t5-{size}"
        assert parameters(name, "encoder") == pytest.approx(encoder, rel=0.02)
        assert parameters(name) == pytest.approx(both, rel=0.06)  # 770M and 3B are of checkpoints with a head
    assert parameters("google-bert/bert-base-uncased") == 109_482_240


def test_a_row_says_how_many_parameters_its_vectors_come_from():
    recipe = read_recipe(find_recipe("sentence-t5/table-5"), variables={})
    printed = {"ST5-Enc mean (3B), raw": 1.24e9, "ST5-EncDec first (3B), NLI": 3e9, "ST5-Enc mean (Large), NLI": 335e6}
    for row, count in printed.items():
        text = "\n".join(describe(row_cost(recipe.resolve(row), "t")))
        millions = re.search(r"vectors come from ([\d,]+) million parameters", text)[1]
        assert int(millions.replace(",", "")) * 1e6 == pytest.approx(count, rel=0.06), row


def test_flops_of_a_bert_are_those_of_its_matrix_products():
    tokens = 20
    weights = LAYERS * (4 * WIDTH**2 + 2 * WIDTH * INNER)  # query, key, value, output; two of the perceptron
    attention = LAYERS * 2 * tokens**2 * WIDTH  # query by key, and the mean of the values
    forward, both = text_flops("google-bert/bert-base-uncased", "encoder", tokens)
    assert forward == pytest.approx(2 * (tokens * weights + attention), rel=0.001)  # and the pooler: 2 * 768^2
    assert both == pytest.approx(3 * forward, rel=0.01)


def test_one_decoder_state_costs_less_than_a_written_sentence():
    first, whole = (text_flops("google-t5/t5-base", kind, 20)[0] for kind in ("decoder-first", "seq2seq"))
    assert text_flops("google-t5/t5-base", "encoder", 20)[0] < first < whole


def test_a_row_of_bsl():
    """One million sentences in batches of 64: each view through the online and, without gradient, the other network."""
    cost = row_cost(read_recipe(find_recipe("bsl/table-1"), variables={}).resolve("BSL-BERT"), "bsl/table-1")
    views, learn = cost.stages
    forward, both = text_flops("google-bert/bert-base-uncased", "encoder", 17)
    assert (views.rows, views.steps, learn.rows, learn.steps, learn.runs) == (1_000_000, 0, 1_000_000, 15_625, 3)
    assert learn.flops == pytest.approx(1_000_000 * 2 * (both + forward), rel=0.001)
    assert views.writes
    assert sum("opus-mt" in name for name in cost.checkpoints) == 4
    lines = describe(cost)
    assert lines[0] == "sentloom lab reproduce bsl/table-1 --row BSL-BERT"
    assert any("0.44 GB, from the hub" in line for line in lines)
    assert "seeds" in lines[-2]


def test_what_does_not_fit_one_gpu_says_so():
    recipe = read_recipe(find_recipe("sentence-t5/table-1"), variables={})
    text = {name: "\n".join(describe(row_cost(recipe.resolve(name), "t"))) for name in recipe.variants}
    assert "fits no single GPU" in text["ST5-EncDec (11B)"]
    assert "fits a GPU with 80 GB" in text["ST5-Enc (11B)"]


def test_files_that_are_here_are_counted(tmp_path):
    texts = tmp_path / "own.txt"
    texts.write_text("\n".join(f"A sentence with the number {n}." for n in range(100)))
    path = tmp_path / "r.yaml"
    stage = {"name": "s", "method": "simcse", "data": "own.txt", "batch": 10, "epochs": 2}
    path.write_text(yaml.dump({"base": "google-bert/bert-base-uncased", "stages": [stage]}))
    (cost,) = row_cost(read_recipe(path).resolve(), "t").stages
    assert (cost.rows, cost.steps) == (100, 20)


@pytest.fixture
def checkpoint(kitchen, tmp_path, monkeypatch):
    """A small BERT in ./google-bert/bert-base-uncased."""
    monkeypatch.chdir(tmp_path)
    place = tmp_path / "google-bert" / "bert-base-uncased"
    shutil.copytree(kitchen.base, place)
    return place


def test_a_pinned_checkpoint_is_found_in_a_folder_of_its_name(checkpoint):
    plan = read_recipe(find_recipe("bsl/table-1"), variables={}).resolve("BERT avg.")
    assert plan.base == str(checkpoint)
    flow = read_recipe(find_recipe("bsl/table-1"), variables={}).resolve("BERT-flow")
    assert flow.base.startswith(f"flow:{checkpoint}:")
    cost = row_cost(plan, "bsl/table-1")
    assert cost.here == {str(checkpoint)}
    assert cost.disk == 0


def test_the_command_shows_costs_and_downloads_nothing(sentloom, tmp_path):
    done = sentloom("lab", "reproduce", "bsl/table-9", "--dry-run", "--set", "seeds=[1]", "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "sentloom lab reproduce bsl/table-9 --row BSL" in done.stdout
    assert "FLOP" in done.stdout
    assert "x 3 seeds" not in done.stdout
    assert not (tmp_path / "out").exists()
