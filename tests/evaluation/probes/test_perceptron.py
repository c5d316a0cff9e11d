import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

from sentloom.evaluation.probes.perceptron import Training, predict
from tests.evaluation.probes.test_protocols import blobs

OPTIMIZERS = {"adam": torch.optim.Adam, "rmsprop": torch.optim.RMSprop}


def one_by_one(x, y, train, held, l2, hidden, training):
    """Slow oracle: the same classifier with torch's layers and optimizers, one model at a time."""
    random = np.random.RandomState(1111)
    if held is None:
        order = random.permutation(len(train))
        size = int(0.05 * len(train))
        train, held = train[order[size:]], train[order[:size]]
    torch.manual_seed(1111)
    classes = int(y.max()) + 1
    model = torch.nn.Sequential(
        torch.nn.Linear(x.shape[1], hidden), torch.nn.Sigmoid(), torch.nn.Linear(hidden, classes)
    )
    optimizer = OPTIMIZERS[training.optimizer](model.parameters(), weight_decay=l2)
    best, failures, epochs, stop = -1.0, 0, 0, False
    while not stop and epochs <= 200:
        for _ in range(training.epochs):
            order = random.permutation(len(train))
            for at in range(0, len(train), training.batch):
                rows = train[order[at : at + training.batch]]
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
                optimizer.step()
        epochs += training.epochs
        right = float((model(x[held]).argmax(dim=1) == y[held]).float().mean())
        if right > best:
            best, kept = right, copy.deepcopy(model)
        else:
            stop = failures >= training.tenacity
            failures += 1
    return kept(x).argmax(dim=1).numpy()


@pytest.mark.parametrize("optimizer", ["adam", "rmsprop"])
def test_batched_models_predict_like_single_ones(optimizer):
    """Splits of different sizes and numbers of batches, one of them without held-out rows."""
    x, y = (torch.from_numpy(array) for array in blobs(120, 5, 3))
    rows = np.arange(120)
    splits = [(rows[:70], rows[70:]), (rows[20:95], np.r_[rows[:20], rows[95:]]), (rows, None)]
    training = Training(optimizer, batch=32, epochs=2, tenacity=1)
    penalties = [1e-5, 1e-2]
    found = predict(x, y, splits, penalties, replace(training, hidden=8))
    assert found.shape == (2, 3, 120)
    for place, l2 in enumerate(penalties):
        for number, (train, held) in enumerate(splits):
            alone = one_by_one(x, y, train, held, l2, 8, training)
            assert (found[place, number] == alone).mean() > 0.99  # rounding differs


def test_predictions_are_reproducible_and_leave_the_random_state_alone():
    x, y = (torch.from_numpy(array) for array in blobs(60, 4, 2))
    training = Training("adam", batch=16, epochs=2, tenacity=1)
    torch.manual_seed(5)
    state = torch.get_rng_state()
    first, second = (predict(x, y, [(np.arange(60), None)], [1e-4], replace(training, hidden=8)) for _ in range(2))
    assert (first == second).all()
    assert torch.equal(torch.get_rng_state(), state)


def test_a_hidden_layer_learns_a_nonlinear_problem():
    random = np.random.default_rng(0)
    x = random.choice([-1.0, 1.0], size=(200, 2)) + 0.1 * random.normal(size=(200, 2))
    y = torch.from_numpy((x[:, 0] * x[:, 1] > 0).astype(np.int64))
    rows = np.arange(200)
    training = Training("rmsprop", batch=32, epochs=4, tenacity=5)
    found = predict(torch.from_numpy(x).float(), y, [(rows[:100], rows[100:])], [1e-5], training)
    assert (found[0, 0, 100:] == y.numpy()[100:]).mean() > 0.95


def test_results_do_not_depend_on_group_size():
    x, y = (torch.from_numpy(array) for array in blobs(60, 4, 2))
    rows = np.arange(60)
    splits = [(rows[:40], rows[40:]), (rows[20:], rows[:20])]
    training = Training("adam", batch=16, epochs=2, tenacity=1)
    whole = predict(x, y, splits, [1e-4, 1e-2], replace(training, hidden=8))
    assert (predict(x, y, splits, [1e-4, 1e-2], replace(training, hidden=8), together=1) == whole).mean() > 0.99
