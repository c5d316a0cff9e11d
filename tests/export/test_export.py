"""A target gets its name only if it gives the model's vectors; `Encoder.load` runs it with the same `encode`."""

import json

import numpy as np
import pytest

from sentloom import evaluate, fit
from sentloom.encoder import Encoder, Pooling
from sentloom.encoder.device import running_on
from sentloom.encoder.formats.format import Target
from sentloom.encoder.golden import golden_texts, read_golden
from sentloom.encoder.saving import write_model
from sentloom.errors import InputError, ModelError
from sentloom.export.backends import with_backend
from sentloom.export.export import Scored, export

TEXTS = ["A man is playing a guitar on the stage.", "Two dogs run.", "", "Ein Hund läuft durch den Garten " * 9]


@pytest.mark.parametrize("name", ["onnx", "ctranslate2"])
@pytest.mark.parametrize("role", ["symmetric", "query", "document"])
def test_vectors_are_the_same_in_every_role_and_batch(request, encoder, name, role):
    loaded = Encoder.load(request.getfixturevalue(name).folder)
    expected = encoder.encode(TEXTS, role=role)
    assert loaded.dimension == 12
    np.testing.assert_allclose(loaded.encode(TEXTS, role=role), expected, atol=2e-5)
    alone = np.stack([loaded.encode(text, role=role) for text in TEXTS])
    np.testing.assert_allclose(alone, expected, atol=2e-5)


@pytest.mark.parametrize("name", ["onnx", "ctranslate2"])
def test_golden_vectors_are_the_models_own(request, encoder, name):
    done = request.getfixturevalue(name)
    golden = read_golden(done.folder)
    assert golden.texts == golden_texts()
    np.testing.assert_allclose(golden.vectors, encoder.encode(golden.texts), atol=1e-6)
    assert done.agreement.mean >= 0.99999
    assert golden.holds(golden.check(Encoder.load(done.folder)))


def test_what_was_exported_is_refused_as_a_base(ctranslate2, tmp_path):
    pairs = [(f"Where is room {n}?", f"Room {n} is upstairs.") for n in range(120)]
    with pytest.raises(ModelError, match="can encode but cannot be trained or saved"):
        fit(pairs, tmp_path / "model", base=ctranslate2.folder, budget="2steps")


@pytest.mark.parametrize("name", ["onnx", "ctranslate2"])
def test_what_was_exported_cannot_be_changed(request, name, tmp_path):
    loaded = Encoder.load(request.getfixturevalue(name).folder)
    for change in (
        loaded.train,
        lambda: loaded.save(tmp_path / "new"),
        lambda: export(loaded, "onnx", tmp_path / "new"),
    ):
        with pytest.raises(ModelError, match="can encode but cannot be trained or saved"):
            change()
    assert not (tmp_path / "new").exists()


def test_the_folder_has_the_files_that_other_tools_read(onnx):
    folder = onnx.folder
    modules = json.loads((folder / "modules.json").read_text())
    assert [module["type"].rpartition(".")[2] for module in modules] == ["Transformer", "Pooling", "Dense", "Normalize"]
    assert json.loads((folder / "1_Pooling/config.json").read_text())["pooling_mode_cls_token"] is True
    assert json.loads((folder / "config_sentence_transformers.json").read_text())["prompts"]["query"] == "a man "
    for file in (
        "onnx/model.onnx",
        "config.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "2_Dense/model.safetensors",
    ):
        assert (folder / file).is_file()
    assert not (folder / "model.safetensors").exists()


def with_other_pooling(encoder, folder):
    parts = {"heads": list(encoder.heads), "prompts": encoder.prompts}
    write_model(Encoder(encoder.backbone, encoder.tokens, pooling=Pooling("max"), **parts), folder)


def without_prompts(encoder, folder):
    write_model(Encoder(encoder.backbone, encoder.tokens, pooling=encoder.pooling, heads=list(encoder.heads)), folder)


def test_other_vectors_are_refused_and_nothing_is_written(encoder, tmp_path, listed):
    listed("wrong", Target(with_other_pooling))
    with pytest.raises(ModelError, match=r"export to wrong: its vectors are not the model's: the mean cosine is -?0\."):
        export(encoder, "wrong", tmp_path / "new")
    assert not list(tmp_path.glob("*new*"))  # nor a part of it


def test_a_role_with_another_prompt_is_noticed(encoder, tmp_path, listed):
    listed("bare", Target(without_prompts))
    with pytest.raises(ModelError, match="so nothing was written"):
        export(encoder, "bare", tmp_path / "new")
    assert not list(tmp_path.glob("*new*"))  # nor a part of it


def test_a_lost_score_is_refused(encoder, tmp_path, listed, monkeypatch):
    listed("rounded", Target(write_model, 0.99))
    scores = iter([80.0, 79.4])
    monkeypatch.setattr("sentloom.export.export.mean_score", lambda model, tasks: next(scores))
    with pytest.raises(
        ModelError, match=r"it loses 0\.60 points \(80\.00 before, 79\.40 after, accuracy on general triplets\)"
    ):
        export(encoder, "rounded", tmp_path / "new", accept_loss=0.5)
    assert not list(tmp_path.glob("*new*"))  # nor a part of it


def test_a_rounded_target_is_scored_and_its_golden_vectors_say_how_close(encoder, tmp_path, listed):
    listed("rounded", Target(write_model, 0.99))
    done = export(encoder, "rounded", tmp_path / "new", accept_loss=0)
    assert read_golden(tmp_path / "new").required == 0.99
    assert done.score.on == ("general triplets",)
    assert done.score.lost == pytest.approx(0)


def test_points_lost_by_hand():
    scored = Scored(82.5, 82.25, ("a.csv", "b"), ("ndcg@10", "spearman"))
    assert scored.lost == 0.25
    assert str(scored) == "82.50 before, 82.25 after, mean of nDCG@10 on a.csv, Spearman on b"


def test_only_a_model_is_replaced(encoder, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ModelError, match="something other than a model"):
        export(encoder, "onnx", tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_an_unknown_target(encoder, tmp_path):
    with pytest.raises(InputError, match="'tensorrt' is unknown"):
        export(encoder, "tensorrt", tmp_path / "new")


def test_sentence_transformers_reads_its_target(encoder, tmp_path):
    from sentence_transformers import SentenceTransformer

    encoder.export(tmp_path / "new", to="sentence-transformers")
    theirs = SentenceTransformer(str(tmp_path / "new"), device="cpu")
    np.testing.assert_allclose(theirs.encode_query(TEXTS), encoder.encode(TEXTS, role="query"), atol=2e-5)


@pytest.mark.parametrize("name", ["onnx", "ctranslate2"])
def test_what_was_exported_runs_in_its_own_precision(request, bert, name, tmp_path):
    folder = request.getfixturevalue(name).folder
    pairs = [(f"Where is room {n}?", f"Room {n} is upstairs.") for n in range(10)]
    for call in (lambda: Encoder.load(folder, precision="bf16"), lambda: evaluate(folder, pairs, precision="bf16")):
        with pytest.raises(InputError, match=f"{folder} is an exported model, which cannot run in bf16"):
            call()
    with running_on(None, "bf16"):
        assert Encoder.load(folder).precision == "fp32"
    rough = Encoder.load(bert, precision="bf16")
    with pytest.raises(InputError, match="the encoder runs in bf16"):
        rough.export(tmp_path / "new", name)
    with pytest.raises(InputError, match=f"{name} does not run in bf16"):
        with_backend(rough, name, print)
    assert with_backend(rough, "auto", print) is rough
    assert not (tmp_path / "new").exists()


def test_a_model_is_not_replaced_by_its_export_but_an_earlier_export_is(bert, tmp_path):
    encoder = Encoder.load(bert)
    encoder.save(tmp_path / "model")
    before = (tmp_path / "model" / "model.safetensors").read_bytes()
    for to in ("ctranslate2", "sentence-transformers"):
        with pytest.raises(InputError, match="an export may not replace"):
            Encoder.load(tmp_path / "model").export(tmp_path / "model", to=to)
    assert (tmp_path / "model" / "model.safetensors").read_bytes() == before
    for _ in range(2):
        encoder.export(tmp_path / "exported", to="ctranslate2")
    np.testing.assert_allclose(Encoder.load(tmp_path / "exported").encode(TEXTS), encoder.encode(TEXTS), atol=2e-5)
