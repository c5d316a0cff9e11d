import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from sentloom.evaluation.probes import logistic

PENALTIES = [1e-5, 1e-4, 1e-3, 1e-2]


def blobs(rows, features, classes, seed=0, spread=1.0):
    """Draw overlapping classes on correlated features, like sentence vectors."""
    random = np.random.default_rng(seed)
    gold = random.permutation(np.arange(rows) % classes)
    centres = random.normal(size=(classes, features)) * spread
    mixing = random.normal(size=(features, features)) / features**0.5
    x = (centres[gold] + 2 * random.normal(size=(rows, features))) @ mixing + 0.3
    return torch.from_numpy(x.astype(np.float32)), torch.from_numpy(gold)


def some_rows(rows, models, seed=1):
    return torch.from_numpy(np.random.default_rng(seed).random((rows, models)) < 0.8)


def with_ones(x):
    return torch.cat([x, torch.ones(len(x), 1)], dim=1).double()


def gradient(x, targets, weights, l2):
    """Compute the gradient of the objective by automatic differentiation in float64."""
    weights = weights.double().requires_grad_()
    loss = torch.nn.functional.cross_entropy(with_ones(x) @ weights, targets.double())
    (loss + l2 / 2 * weights.square().sum()).backward()
    return weights.grad


def relative_gradients(x, targets, training, weights):
    for of_penalty, l2 in zip(weights, PENALTIES, strict=True):
        for model, rows in zip(of_penalty, training.T, strict=True):
            start = gradient(x[rows], targets[rows], torch.zeros_like(model), l2).norm()
            yield float(gradient(x[rows], targets[rows], model, l2).norm() / start)


@pytest.mark.parametrize(("rows", "features", "classes"), [(300, 20, 2), (60, 100, 3), (400, 20, 30)])
def test_the_gradient_at_the_optimum_is_zero(rows, features, classes):
    x, gold = blobs(rows, features, classes)
    targets, training = torch.eye(classes)[gold], some_rows(rows, 6)
    weights = logistic.fit(x, targets, training, PENALTIES)
    assert weights.shape == (4, 6, features + 1, classes)
    assert max(relative_gradients(x, targets, training, weights)) < 1e-4


@pytest.mark.parametrize("classes", [2, 3])
def test_soft_targets_are_solved_to_the_optimum(classes):
    x, _ = blobs(200, 10, 2)
    targets = torch.from_numpy(np.random.default_rng(3).dirichlet(np.ones(classes), 200).astype(np.float32))
    training = some_rows(200, 3)
    weights = logistic.fit(x, targets, training, PENALTIES)
    assert (
        max(relative_gradients(x, targets, training, weights)) < 3e-4
    )  # the initial gradient is small, because there is little to learn


@pytest.mark.parametrize("classes", [2, 4, logistic.MANY + 1])
def test_weights_and_predictions_equal_scikit_learn(classes):
    x, gold = blobs(400, 16, classes)
    training = some_rows(400, 2)
    weights = logistic.fit(x, torch.eye(classes)[gold], training, PENALTIES).double()
    ones = with_ones(x)
    for of_penalty, l2 in zip(weights, PENALTIES, strict=True):
        for mine, rows in zip(of_penalty, training.T, strict=True):
            # two classes: scikit-learn's single vector is the difference of ours, with half the weight decay
            c = (2 if classes == 2 else 1) / (float(rows.sum()) * l2)
            peer = LogisticRegression(C=c, fit_intercept=False, tol=1e-10, max_iter=20_000)
            peer.fit(ones[rows].numpy(), gold[rows].numpy())
            theirs = torch.from_numpy(peer.coef_.T)
            same_form = mine[:, 1:] - mine[:, :1] if classes == 2 else mine
            assert (same_form - theirs).norm() < 1e-3 * theirs.norm()
            answers = (ones @ mine).argmax(dim=1).numpy()
            clear = np.abs(np.diff(np.sort((ones @ mine).numpy(), axis=1)[:, -2:])[:, 0]) > 1e-2
            assert (answers == peer.predict(ones.numpy()))[clear].all()


def test_one_row_per_class_against_hand_computed_values():
    """For x = 1 and x = -1 the bias is zero, and the logit w solves sigmoid(-w) = l2 * w / 2."""
    x, targets = torch.tensor([[1.0], [-1.0]]), torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    weights = logistic.fit(x, targets, torch.ones(2, 1, dtype=torch.bool), [0.1])[0, 0]
    logit = float(weights[0, 1] - weights[0, 0])
    assert 1 / (1 + np.exp(logit)) == pytest.approx(0.1 * logit / 2, rel=1e-3)
    assert weights.sum(dim=1).abs().max() < 1e-5
    assert weights[1].abs().max() < 1e-5


def test_models_are_independent_of_each_other():
    x, gold = blobs(200, 8, 3)
    targets, training = torch.eye(3)[gold], some_rows(200, 5)
    together = logistic.fit(x, targets, training, PENALTIES)
    alone = logistic.fit(x, targets, training[:, 2:3], PENALTIES)
    assert torch.allclose(together[:, 2:3], alone, rtol=2e-3, atol=2e-3)


def test_results_do_not_depend_on_chunk_size():
    x, gold = blobs(200, 8, 2)
    targets, training = torch.eye(2)[gold], some_rows(200, 5)
    whole = logistic.fit(x, targets, training, [1e-3])
    chunked = logistic.fit(x, targets, training, [1e-3], buffer_bytes=2 * logistic.BUFFERS * 4 * 200)
    assert torch.allclose(chunked, whole, rtol=1e-3, atol=1e-4)


@pytest.mark.long
def test_the_same_input_gives_the_same_bits():
    x, gold = blobs(300, 30, 3)
    targets, training = torch.eye(3)[gold], some_rows(300, 7)
    first, second = (logistic.fit(x, targets, training, PENALTIES) for _ in range(2))
    assert torch.equal(first, second)


def test_many_classes_of_very_different_sizes_are_solved_to_the_optimum():
    x, gold = blobs(600, 30, 40)
    gold[:400] = 0
    targets, training = torch.eye(40)[gold], some_rows(600, 2)
    weights = logistic.fit(x, targets, training, PENALTIES)
    assert max(relative_gradients(x, targets, training, weights)) < 1e-4


@pytest.mark.parametrize("scale", [1e-30, 1e-12, 1e-4, 1e4, 1e12, 1e30])
def test_any_scale_gives_finite_weights(scale):
    many = torch.arange(120) % 30
    assert torch.isfinite(
        logistic.fit(blobs(120, 6, 3)[0] * scale, torch.eye(30)[many], some_rows(120, 2), [1e-5])
    ).all()
    x, gold = blobs(120, 6, 3)
    weights = logistic.fit(x * scale, torch.eye(3)[gold], some_rows(120, 3), PENALTIES)
    assert torch.isfinite(weights).all()
    right = (logistic.logits(x * scale, weights[0]).argmax(dim=2) == gold[:, None]).float().mean()
    assert right > (0.6 if scale > 1 else 0.3)  # weight decay suppresses tiny features


def test_constant_and_zero_features_are_supported():
    x, gold = blobs(120, 6, 2)
    x[:, 0], x[:, 1], x[:10] = 0, 5, 0
    targets, training = torch.eye(2)[gold], some_rows(120, 3)
    weights = logistic.fit(x, targets, training, PENALTIES)
    assert max(relative_gradients(x, targets, training, weights)) < 1e-4
    assert weights[:, :, 0].abs().max() == 0


def test_a_class_that_a_model_never_sees_is_unlikely_there():
    x, gold = blobs(150, 5, 3)
    training = torch.stack([gold != 2, gold < 9], dim=1)
    weights = logistic.fit(x, torch.eye(3)[gold], training, [1e-3])
    answers = logistic.logits(x, weights[0]).argmax(dim=2)
    assert (answers[gold != 2, 0] != 2).all()
    assert (answers[:, 1] == 2).any()


@settings(max_examples=15)
@given(st.randoms(use_true_random=False), st.integers(2, 4))
@pytest.mark.long
def test_the_order_of_rows_and_columns_does_not_matter(random, classes):
    x, gold = blobs(80, 5, classes, seed=random.randrange(1000))
    targets, training = torch.eye(classes)[gold], some_rows(80, 3)
    rows, columns = random.sample(range(80), 80), random.sample(range(5), 5)
    straight = logistic.fit(x, targets, training, [1e-3])[0]
    mixed = logistic.fit(x[rows][:, columns], targets[rows], training[rows], [1e-3])[0]
    assert torch.allclose(mixed, straight[:, [*columns, 5]], rtol=5e-3, atol=5e-3)
