"""A student learns from its teacher on raw text, and what it loses is measured on rows that it has not seen."""

import random
from pathlib import Path

import pytest
import torch
from accelerate import Accelerator

from sentloom.data import read
from sentloom.encoder import Encoder
from sentloom.encoder.heads import Projection
from sentloom.errors import InputError
from sentloom.export.shrink import ShrinkRequest, divided, reached, shrink
from tests.encoder.small_models import SENTENCES, build_model_folder

WORDS = sorted({word for text in SENTENCES for word in text.split()})


@pytest.fixture(scope="module")
def texts():
    draw = random.Random(0)
    return read([" ".join(draw.sample(WORDS, 8)) for _ in range(600)])


@pytest.fixture(scope="module")
def teacher(bert, tmp_path_factory):
    """A model whose layers matter, unlike those of a new one."""
    encoder, folder = Encoder.load(bert), tmp_path_factory.mktemp("teacher") / "model"
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in encoder.backbone.blocks.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape))
    encoder.save(folder)
    return folder


def run(model, texts, output, against=(), log=lambda line: None, **asked):
    request = ShrinkRequest(str(model), output, **{"steps": 40, **asked})
    return shrink(request, texts, against, None, Accelerator(cpu=True), log)


@pytest.mark.long
def test_a_student_learns_and_a_second_call_trains_nothing(teacher, texts, tmp_path):
    little = run(teacher, texts, tmp_path / "little", steps=1)
    much = run(teacher, texts, tmp_path / "much", steps=80)
    _, held_out = divided(texts)
    taught = Encoder.load(teacher).encode(held_out)
    distances = [((shrunk.encoder.encode(held_out) - taught) ** 2).mean() for shrunk in (little, much)]
    assert distances[1] < 0.8 * distances[0]
    assert much.total.before == pytest.approx(100)
    assert much.total.low <= much.total.difference <= much.total.high < 0
    assert "agreement with the teacher, spearman: 100.00 before" in str(much)
    assert (much.encoder.backbone.num_layers, much.parameters[1] < much.parameters[0]) == (2, True)
    said = []
    again = run(teacher, texts, tmp_path / "much", steps=80, log=said.append)
    assert again.measures == much.measures
    assert sum("done before" in line for line in said) == 2


@pytest.mark.long
def test_a_decoder_first_t5_teaches_an_encoder(texts, tmp_path):
    teacher = build_model_folder("t5", tmp_path / "t5")
    shrunk = run(teacher, texts, tmp_path / "small", pooling="decoder-first", steps=60)
    student, taught = shrunk.encoder, Encoder.load(teacher, pooling="decoder-first")
    assert (str(student.pooling), student.backbone.num_layers) == ("mean", 2)
    sample = texts["text"][:50]
    cosines = (student.encode(sample) * taught.encode(sample)).sum(axis=1)
    untrained = Encoder.load(teacher, pooling="mean").encode(sample)
    assert cosines.mean() > (untrained * taught.encode(sample)).sum(axis=1).mean() + 0.3


def test_another_student_gets_a_projection_to_the_teachers_width(bert, texts, tmp_path):
    teacher = Encoder.load(bert)
    teacher.heads.append(Projection(32, 12))
    teacher.save(tmp_path / "teacher")
    other = build_model_folder("distilbert", tmp_path / "other")
    student = run(tmp_path / "teacher", texts, tmp_path / "small", student=str(other), steps=2).encoder
    assert (student.dimension, student.backbone.model.config.model_type) == (12, "distilbert")


def test_a_set_decides_and_its_sentences_are_not_trained_on(bert, texts, tmp_path):
    rows = [
        f"{a}\t{b}\t{n % 6}" for n, (a, b) in enumerate(zip(texts["text"][:60], texts["text"][60:120], strict=True))
    ]
    (tmp_path / "scored.tsv").write_text("\n".join(["sentence1\tsentence2\tscore", *rows]) + "\n", "utf-8")
    said = []
    shrunk = run(bert, texts, tmp_path / "small", [str(tmp_path / "scored.tsv")], said.append, steps=2)
    assert (shrunk.total.items, shrunk.total.metric) == (60, "spearman")
    assert "128 texts to train on" in said  # of 480


def test_text_that_is_scored_is_not_all_there_is(bert, tmp_path):
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("anchor\tpositive\none dog runs\ta cat sits\na bird sings\tone fish swims\n", "utf-8")
    with pytest.raises(
        InputError, match=r"every text is also in retrieval:.*pairs\.tsv, which the models are scored on"
    ):
        run(bert, read(pairs), tmp_path / "model", [f"retrieval:{pairs}"])
    assert list(tmp_path.glob("model*")) == []


def test_held_out_texts_depend_on_the_text_alone(texts):
    training, held_out = divided(texts)
    again, same = divided(texts[::-1])
    assert (len(training), len(held_out)) == (540, 60)
    assert (set(held_out), set(again["text"])) == (set(same), set(training["text"]))
    with pytest.raises(InputError, match="at least 400"):
        divided(texts[:300])


def test_the_teacher_encodes_only_what_the_training_reaches(texts):
    few = reached(texts, ShrinkRequest("", Path("small"), steps=2))
    half = reached(texts, ShrinkRequest("", Path("small"), epochs=0.5))
    assert (len(few), len(half), few["text"][0]) == (128, 300, texts["text"][0])
    assert reached(texts, ShrinkRequest("", Path("small"), epochs=3)) is texts


def test_the_teacher_is_not_replaced(bert, texts):
    with pytest.raises(InputError, match="Choose another name"):
        run(bert, texts, bert)
    with pytest.raises(InputError, match="Choose another name"):
        run(f"{bert}/", texts, bert)
