import json
import shutil
from collections import Counter

import pytest
import torch

from sentloom.encoder import loading as models_room
from sentloom.errors import MissingPart, ModelError
from sentloom.writing.views.settings import BackTranslation, Pivot
from sentloom.writing.views.translation import GumbelNoise, PivotTranslator
from tests.encoder.small_models import SENTENCES

pytestmark = pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")


def translator(folders, **settings):
    pivot = Pivot(forward=str(folders[0]), backward=str(folders[1]))
    return PivotTranslator(pivot, BackTranslation(pivots=(pivot,), **settings))


@torch.no_grad()
def greedy(way, text):
    """Slow oracle: run the whole row again for every token and take the likeliest, never padding."""
    torch.set_num_threads(1)
    ids = way.tokenizer(" ".join(text.split()), truncation=True, max_length=62, return_tensors="pt")["input_ids"]
    out = [way.model.config.decoder_start_token_id]
    most = min(2 * ids.shape[1] + 20, 62)
    while len(out) <= most and (len(out) == 1 or out[-1] != 0):
        logits = way.model(input_ids=ids, decoder_input_ids=torch.tensor([out]), use_cache=False).logits[0, -1]
        out.append(int(logits.argmax()) if len(out) < most else 0)
    return way.tokenizer.decode(out, skip_special_tokens=True)


def test_one_beam_is_greedy_decoding(translation_models):
    maker = translator(translation_models, beams=1)
    for text in SENTENCES[:1]:
        pivot = greedy(maker._ways[0], text)
        assert next(maker.views([text])) == greedy(maker._ways[1], pivot).strip()


@pytest.mark.parametrize(
    "settings", [pytest.param({"beams": 3}, marks=pytest.mark.long), {"decoding": "sampling", "seed": 5}]
)
def test_order_and_batch_do_not_matter(translation_models, settings):
    maker = translator(translation_models, **settings)
    views = list(maker.views(SENTENCES[:4]))
    assert list(maker.views(SENTENCES[:4][::-1])) == views[::-1]
    assert list(translator(translation_models, **settings).views(SENTENCES[2:4])) == views[2:4]


def test_sampling_depends_on_the_seed_and_leaves_the_global_generator_alone(translation_models):
    first, second = (translator(translation_models, decoding="sampling", seed=seed) for seed in (1, 2))
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    views = list(first.views(SENTENCES[:2]))
    assert torch.equal(torch.rand(3), expected)
    assert views != list(second.views(SENTENCES[:2]))


def test_gumbel_noise_samples_from_the_softmax():
    logits = torch.tensor([[1.0, 2.0, 3.0, -torch.inf]])
    drawn = Counter(int(GumbelNoise(seed)(None, logits).argmax()) for seed in range(6000))
    for word, share in enumerate(logits.softmax(-1)[0, :3].tolist()):
        assert drawn[word] / 6000 == pytest.approx(share, abs=0.025)  # four standard deviations of the largest
    assert drawn[3] == 0


def test_a_small_top_p_is_greedy(translation_models):
    sampled = translator(translation_models, decoding="sampling", top_p=1e-6)
    assert list(sampled.views(SENTENCES[:2])) == list(translator(translation_models, beams=1).views(SENTENCES[:2]))


@pytest.mark.long
def test_top_k_of_one_is_greedy(translation_models):
    sampled = translator(translation_models, decoding="sampling", top_k=1)
    assert list(sampled.views(SENTENCES[:2])) == list(translator(translation_models, beams=1).views(SENTENCES[:2]))


def test_identities_differ_by_every_setting(translation_models):
    makers = [
        translator(translation_models),
        translator(translation_models[::-1]),
        translator(translation_models, beams=2),
        translator(translation_models, decoding="sampling"),
        translator(translation_models, decoding="sampling", seed=1),
        translator(translation_models, decoding="sampling", top_p=0.5),
    ]
    assert len({maker.identity for maker in makers}) == len(makers)


def test_missing_sentencepiece_is_named_with_the_install_command(translation_models, monkeypatch):
    monkeypatch.setattr(models_room, "find_spec", lambda name: None)
    with pytest.raises(MissingPart, match="pip install sentencepiece"):
        translator(translation_models)


def test_models_that_cannot_translate_are_refused(translation_models, masked_model, tmp_path):
    with pytest.raises(ModelError, match="a translation model"):
        translator([masked_model, masked_model])
    shutil.copytree(translation_models[0], tmp_path / "code")
    config = json.loads((tmp_path / "code/config.json").read_text())
    (tmp_path / "code/config.json").write_text(json.dumps(config | {"auto_map": {"AutoModel": "x.Y"}}))
    with pytest.raises(ModelError, match="brings its own code"):
        translator([tmp_path / "code", translation_models[1]])
    shutil.copytree(translation_models[0], tmp_path / "pickle")
    (tmp_path / "pickle/model.safetensors").rename(tmp_path / "pickle/pytorch_model.bin")
    with pytest.raises(ModelError, match="pickled"):
        translator([tmp_path / "pickle", translation_models[1]])
