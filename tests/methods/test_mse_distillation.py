"""MSE distillation: the loss by loops; the teacher is frozen and its vectors are kept."""

import numpy as np
import pytest
import torch

from sentloom.data.batches import Batch
from sentloom.data.shapes import Shape
from sentloom.encoder import Encoder
from sentloom.encoder.heads import Projection
from sentloom.errors import InputError
from sentloom.methods.mse_distillation import MseDistillation, MseDistillationOptions
from tests.encoder.small_models import SENTENCES
from tests.methods.conftest import OTHERS, changed, optimise, pairs_batch, states_of
from tests.small_data import build_dataset


@pytest.fixture
def teacher(model_folder, tmp_path):
    """A model of another width and other vectors, of any length or of length one."""

    def build(unit_length):
        torch.manual_seed(4)
        encoder = Encoder.load(model_folder("bert"), pooling="mean")
        encoder.heads.append(Projection(encoder.dimension, 12))
        encoder.unit_length = unit_length
        encoder.save(tmp_path / f"teacher-{unit_length}")
        return str(tmp_path / f"teacher-{unit_length}")

    return build


def build(encoder, **options):
    torch.manual_seed(0)
    return MseDistillation(encoder, MseDistillationOptions(**options))


@pytest.mark.parametrize("unit_length", [True, False])
def test_the_loss_equals_the_formula(encoder, teacher, unit_length):
    name = teacher(unit_length)
    method, batch = build(encoder, source=name, head="linear").double().eval(), pairs_batch()
    model = Encoder.load(name).double()
    total = 0.0
    with torch.no_grad():
        for s, t in zip(SENTENCES, OTHERS, strict=True):
            target = model([model.tokenize([s])[0]])[0].numpy()
            for text in (s, t):
                vector = encoder([encoder.tokenize([text])[0]], raw=True)[0].numpy()
                vector = vector / np.sqrt(vector @ vector) if unit_length else vector
                total += sum((a - b) ** 2 for a, b in zip(vector, target, strict=True))
    expected = total / 2 / len(SENTENCES) / 12
    assert method.loss(method.embed(batch), batch).item() == pytest.approx(expected, rel=1e-9)


def test_single_texts_are_encoded_once(encoder, teacher):
    name = teacher(True)
    method = build(encoder, source=name, head="linear").double().eval()
    batch = Batch({"text": SENTENCES}, np.arange(8), np.arange(8), (0, 0))
    student, target = method.embed(batch)
    assert student.shape == target.shape == (8, 12)
    paired = pairs_batch(SENTENCES, SENTENCES)
    expected = method.loss(method.embed(paired), paired).item()
    assert method.loss((student, target), batch).item() == pytest.approx(expected, rel=1e-9)


def test_the_gradient_reaches_the_student_alone(encoder, teacher):
    method, batch = build(encoder, source=teacher(True), head="linear").double().train(), pairs_batch()
    of_s, of_t, teacher_s = (x.detach().requires_grad_() for x in method.embed(batch))
    assert torch.autograd.gradcheck(lambda *student: method.loss((*student, teacher_s), batch), [of_s, of_t])
    teacher_s.grad = None
    method.loss((of_s, of_t, teacher_s), batch).backward()
    assert teacher_s.grad is None
    assert of_t.grad.abs().max() > 0


def test_it_learns_and_the_teacher_does_not(encoder, teacher, tmp_path):
    name = teacher(True)
    method, batch = build(encoder, source=name, head="linear"), pairs_batch()
    before = states_of(method.source)
    method.prepare(build_dataset(Shape.PAIRS, list(zip(SENTENCES, OTHERS, strict=True))), tmp_path / "vectors")
    torch.testing.assert_close(method.embed(batch)[2].numpy(), Encoder.load(name).encode(SENTENCES))
    losses = optimise(method, [batch] * 30, rate=5e-3)
    assert losses[-1] < losses[0] / 4
    assert not changed(method.source, before)
    assert not any(module.training for module in method.source.modules())
    method.finished().save(tmp_path / "student")
    student, model = Encoder.load(tmp_path / "student"), Encoder.load(name)
    assert student.dimension == model.dimension == 12
    near = (student.encode(OTHERS) * model.encode(SENTENCES)).sum(axis=1)  # cosines of translations
    assert near.mean() > 0.9


def test_the_start_is_its_own_teacher_and_widths_must_agree(encoder, teacher):
    method = build(encoder).eval()
    embeddings = method.embed(pairs_batch(SENTENCES, SENTENCES))
    assert method.loss(embeddings, pairs_batch(SENTENCES, SENTENCES)).item() == pytest.approx(0, abs=1e-12)
    with pytest.raises(InputError, match="Set head: linear"):
        build(encoder, source=teacher(True))


def test_a_dropped_head_leaves_the_students_width(encoder, teacher):
    method = build(encoder, source=teacher(True), head="linear-tanh", keep_head=False)
    assert method.embed(pairs_batch())[1].shape == (8, 12)
    assert method.finished().dimension == encoder.backbone.width


@pytest.mark.parametrize("unit_length", [True, False])
def test_a_saved_student_has_the_teachers_length(encoder, teacher, unit_length, tmp_path):
    encoder.unit_length = not unit_length
    method = build(encoder, source=teacher(unit_length), head="linear").eval()
    batch = pairs_batch()
    with torch.no_grad():
        compared = method.embed(batch)[1].numpy()
    method.finished().save(tmp_path / "student")
    np.testing.assert_allclose(Encoder.load(tmp_path / "student").encode(batch.second), compared, atol=1e-5)
