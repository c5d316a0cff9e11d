"""A backbone of another library: run in batches or one sentence at a time, never changed."""

import numpy as np
import pytest
import torch
from transformers import AutoConfig

from sentloom.encoder.device import running_on
from sentloom.encoder.formats.format import ReadOnlyBackbone
from sentloom.encoder.packing import pack
from sentloom.encoder.pooling import Pooling
from sentloom.errors import InputError, ModelError

IDS = [[5, 6, 7, 8], [9, 10, 11], [12]]  # longest first


class Doubling(ReadOnlyBackbone):
    """Each token's state is twice its id; remembers the shapes that it was given."""

    def run(self, ids, mask):
        self.shapes = [*getattr(self, "shapes", []), tuple(ids.shape)]
        return 2.0 * ids[:, :, None] * mask[:, :, None]


def backbone(batched, family="bert"):
    config = AutoConfig.for_model(family, vocab_size=20, pad_token_id=1)
    return Doubling(config, "model/", "abc", batched=batched).eval()


@pytest.mark.parametrize(("batched", "shapes"), [(True, [(3, 4)]), (False, [(1, 4), (1, 3), (1, 1)])])
def test_states_are_those_of_the_real_tokens_in_packed_order(batched, shapes):
    model = backbone(batched)
    (states,) = model.states(pack(IDS, np.arange(3)))
    assert states[:, 0].tolist() == [2.0 * number for row in IDS for number in row]
    assert model.shapes == shapes


@pytest.mark.parametrize(("family", "first"), [("bert", 0), ("roberta", 2)])
def test_where_positions_start(family, first):
    assert backbone(True, family).first_position == first


@pytest.mark.parametrize("pooling", ["mean@0,-1", "decoder-first"])
def test_poolings_that_need_other_states_are_refused(pooling):
    model = backbone(True)
    model.model.config.is_encoder_decoder = True
    with pytest.raises(InputError, match="model/ gives the states of its last layer only"):
        model.check(Pooling.parse(pooling))


def test_layers_cannot_be_asked_for():
    with pytest.raises(InputError, match="its layers are asked for"):
        backbone(True).states(pack(IDS, np.arange(3)), (0, -1))


def test_it_is_neither_trained_nor_saved(tmp_path):
    model = backbone(True)
    for change in (model.train, lambda: model.model.save_pretrained(tmp_path)):
        with pytest.raises(ModelError, match="model/: it is an exported model"):
            change()
    assert not model.training


def test_the_vocabulary_takes_no_memory():
    rows = backbone(True).model.get_input_embeddings().weight
    assert len(rows) == 20
    assert rows.device == torch.device("meta")


def test_a_precision_that_it_cannot_run_in_is_refused():
    model = backbone(True)
    with pytest.raises(InputError, match=r"model/ is an exported model, which cannot run in bf16\. Expected fp32"):
        model.precision_for("bf16")
    with running_on(None, "bf16"):  # for other models
        assert (model.precision_for(), model.precision_for("fp32")) == ("fp32", "fp32")
