from itertools import combinations

import pytest
import torch

from sentloom.errors import ModelError
from sentloom.writing.views.mask_fill import MaskFiller
from sentloom.writing.views.settings import MaskFill
from tests.encoder.small_models import SENTENCES, build_model_folder


def filler(folder, **settings):
    return MaskFiller(MaskFill(model=str(folder), **settings))


@torch.no_grad()
def filled(maker, text, places):
    """Slow oracle: mask the positions and take the likeliest non-special token at each."""
    torch.set_num_threads(1)
    model, tokenizer = maker._all.model, maker._all.tokenizer
    ids = tokenizer(text)["input_ids"]
    row = [tokenizer.mask_token_id if place in places else token for place, token in enumerate(ids)]
    logits = model(torch.tensor([row])).logits[0]
    for place in places:
        order = logits[place].argsort(descending=True).tolist()
        ids[place] = next(token for token in order if token not in tokenizer.all_special_ids)
    return tokenizer.decode(ids, skip_special_tokens=True)


def test_a_view_is_a_fill_with_the_right_number_of_masks(masked_model):
    maker = filler(masked_model, share=0.2)
    text = "No one knows; it rains."
    tokens = len(maker._all.tokenizer(text)["input_ids"]) - 2
    count = max(1, round(0.2 * tokens))
    fills = {filled(maker, text, places) for places in combinations(range(1, tokens + 1), count)}
    assert next(maker.views([text])) in fills


def test_all_tokens_masked(masked_model):
    maker = filler(masked_model, share=1.0)
    text = "A man is playing a guitar."
    assert next(maker.views([text])) == filled(maker, text, range(1, len(maker._all.tokenizer(text)["input_ids"]) - 1))


def test_order_batch_and_seed(masked_model):
    maker = filler(masked_model)
    views = list(maker.views(SENTENCES))
    assert list(maker.views(SENTENCES[::-1])) == views[::-1]
    assert list(filler(masked_model).views(SENTENCES[3:5])) == views[3:5]
    other = filler(masked_model, seed=1)
    assert list(other.views(SENTENCES)) != views
    assert other.identity != maker.identity


@pytest.mark.parametrize("text", ["", "  ", "\n"])
def test_a_text_without_tokens_is_unchanged(masked_model, text):
    assert next(filler(masked_model).views([text])) == text


def test_text_beyond_the_maximum_length_is_unchanged(masked_model):
    text = " ".join(["the report"] * 200)  # 400 tokens, of which the model reads 62
    view = next(filler(masked_model, share=1.0).views([text]))
    assert view.endswith("the report the report")
    assert view.count("the report") >= 165


def test_models_without_a_head_are_refused(tmp_path):
    with pytest.raises(ModelError, match="cannot fill masks"):
        filler("embedded")
    with pytest.raises(ModelError, match="there are no weights for cls"):
        filler(build_model_folder("bert", tmp_path / "bare"))
    with pytest.raises(ModelError, match="a masked language model"):
        filler(build_model_folder("t5", tmp_path / "t5"))
