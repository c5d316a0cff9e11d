import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

from sentloom.errors import InputError
from sentloom.evaluation.probes import protocols
from sentloom.evaluation.probes.protocols import (
    Probe,
    cross_validated,
    pair_features,
    regress,
    train_and_test,
)

FAST = Probe("fast")
PENALTIES = (1e-5, 1e-4, 1e-3, 1e-2)


def blobs(rows, features, classes, seed=0, spread=0.7):
    random = np.random.default_rng(seed)
    gold = random.permutation(np.arange(rows) % classes)
    centres = np.random.default_rng(99).normal(size=(classes, features)) * spread
    return (centres[gold] + random.normal(size=(rows, features))).astype(np.float32), gold


def peer(x, y, l2):
    """Solve the same objective with scikit-learn."""
    c = (2 if len(set(y)) == 2 else 1) / (len(y) * l2)
    model = LogisticRegression(C=c, fit_intercept=False, tol=1e-8, max_iter=5_000)
    return model.fit(with_ones(x), y)


def with_ones(x):
    return np.concatenate([x, np.ones((len(x), 1))], axis=1).astype(np.float64)


def folds(x, y, k=5):
    return StratifiedKFold(k, shuffle=True, random_state=1111).split(x, y)


def best_penalty(x, y):
    scores = []
    for l2 in PENALTIES:
        right = [peer(x[fit], y[fit], l2).score(with_ones(x[held]), y[held]) for fit, held in folds(x, y)]
        scores.append(round(100 * np.mean(right), 2))
    return PENALTIES[int(np.argmax(scores))]


def test_nested_folds_equal_a_plain_script_with_scikit_learn():
    x, y = blobs(160, 6, 2)
    plain = np.empty(len(y))
    for train, test in folds(x, y):
        model = peer(x[train], y[train], best_penalty(x[train], y[train]))
        plain[test] = model.predict(with_ones(x[test]))
    found = cross_validated(x, y, FAST)
    assert found.dtype == np.float64
    assert (found[:, 1] == y).all()
    assert (found[:, 0] == plain).all()
    assert 0.7 < (plain == y).mean() < 1  # neither hopeless nor trivial


def test_folds_need_a_label_with_a_row_for_each_of_them_and_for_those_within():
    for largest in (5, 6, 7):
        labels = ["a"] * largest + ["b"] * 3 + ["c"]
        features = np.random.default_rng(0).normal(size=(len(labels), 3)).astype(np.float32)
        if largest == 7:  # 7 rows leave 5 outside the first fold
            assert cross_validated(features, labels, FAST).shape == (11, 2)
        else:
            with pytest.raises(InputError, match="the largest class has only"):
                cross_validated(features, labels, FAST)


@pytest.mark.parametrize("classes", [2, 3])
def test_folds_on_training_rows_equal_scikit_learn(classes):
    (x, y), (test, gold) = blobs(150, 5, classes), blobs(60, 5, classes, seed=5)
    model = peer(x, y, best_penalty(x, y))
    found = train_and_test(x, y, test, gold, FAST)
    assert (found[:, 0] == model.predict(with_ones(test))).all()
    assert (found[:, 1] == gold).all()


def test_the_weight_decay_is_chosen_on_dev_rows():
    (x, y), (dev, dev_gold), (test, gold) = blobs(60, 20, 2), blobs(90, 20, 2, seed=1), blobs(90, 20, 2, seed=2)
    models = [peer(x, y, l2) for l2 in PENALTIES]
    best = int(np.argmax([round(100 * model.score(with_ones(dev), dev_gold), 2) for model in models]))
    found = train_and_test(x, y, test, gold, FAST, dev=(dev, dev_gold))
    assert (found[:, 0] == models[best].predict(with_ones(test))).all()


def test_the_first_weight_decay_wins_if_two_decimals_are_equal():
    assert protocols._best([[0.5, 0.7], [0.7, 0.5], [0.6, 0.600001]]) == 0
    assert protocols._best([[0.5, 0.7], [0.7, 0.5002], [0.6, 0.7]]) == 2


def test_labels_may_be_strings_and_are_numbered_in_order():
    x, y = blobs(60, 4, 3)
    words = np.array(["zebra", "ant", "mole"])[y]  # sorted: ant 0, mole 1, zebra 2
    found = cross_validated(x, words.tolist(), FAST)
    assert (found[:, 1] == np.array([2, 0, 1])[y]).all()
    assert (found[:, 0] == found[:, 1]).mean() > 0.5


@pytest.mark.parametrize("hidden", [0, 50])
def test_a_class_with_fewer_rows_than_folds_is_supported(hidden):
    x, y = blobs(80, 4, 2)
    y[:2] = 2
    found = cross_validated(x, y, Probe("fast", hidden))
    assert (found[:, 1] == y).all()
    assert (found[2:, 0] == y[2:]).mean() > 0.6


@pytest.mark.parametrize(
    ("x", "y", "says"),
    [
        (np.ones((20, 3), np.float32), ["a"] * 20, r"the only label is \['a'\]. Expected at least two classes"),
        (np.ones((6, 3), np.float32), [0, 1] * 3, "the largest class has only 3 rows. Expected at least 5"),
        (np.ones((4, 3), np.float32), [0, 1] * 3, r"the shape is \(4, 3\). Expected \(6, f\)"),
        (np.full((20, 3), np.nan, np.float32), [0, 1] * 10, "NaN or infinite values"),
    ],
)
def test_invalid_features_and_labels_are_refused(x, y, says):
    with pytest.raises(InputError, match=says):
        cross_validated(x, y, FAST)


def test_an_unknown_test_label_is_refused():
    x, y = blobs(40, 3, 2)
    with pytest.raises(InputError, match=r"test labels: the labels \['7'\] do not appear in the training rows"):
        train_and_test(x, y, x, [7, *y[1:]], FAST)


def test_unknown_options_are_refused():
    with pytest.raises(InputError, match=r"'slow' is unknown\. Expected paper or fast"):
        Probe("slow")
    with pytest.raises(InputError, match=r"-1 is negative\. Expected 0"):
        Probe(hidden=-1)


@pytest.mark.parametrize("hidden", [0, 50])
def test_uninformative_vectors_predict_the_larger_class(hidden):
    y = np.array([0] * 30 + [1] * 20)
    found = cross_validated(np.zeros((50, 4), np.float32), y, Probe("fast", hidden))
    assert (found[:, 0] == 0).all()


@settings(max_examples=3)
@given(st.integers(0, 10_000))
@pytest.mark.long
def test_the_order_of_features_does_not_matter(seed):
    x, y = blobs(60, 6, 2, seed=seed % 7)
    order = np.random.default_rng(seed).permutation(6)
    assert (cross_validated(x[:, order], y, FAST) == cross_validated(x, y, FAST)).mean() > 0.98


def test_scores_are_distributed_over_integers():
    shares = protocols._shares(np.array([1.0, 3.7, 5.0]), 1, 5)
    assert shares == pytest.approx(np.array([[1, 0, 0, 0, 0], [0, 0, 0.3, 0.7, 0], [0, 0, 0, 0, 1]]), abs=1e-6)


def test_regression_finds_a_score_contained_in_the_features():
    random = np.random.default_rng(0)
    x = random.normal(size=(400, 6)).astype(np.float32)
    gold = np.clip(2.5 + 1.2 * x[:, 0] + 0.1 * random.normal(size=400), 0, 5)
    found = regress(x[:300], gold[:300], x[300:], gold[300:], FAST, (0, 5))
    assert (found[:, 1] == gold[300:]).all()
    assert np.corrcoef(found.T)[0, 1] > 0.97
    assert np.abs(found[:, 0] - found[:, 1]).mean() < 0.3
    with pytest.raises(InputError, match="Expected 1 to 5"):
        regress(x[:300], gold[:300], x[300:], gold[300:], FAST, (1, 5))


def test_pair_features_against_hand_computed_values():
    u, v = np.array([[1.0, -2.0]], np.float32), np.array([[3.0, 0.5]], np.float32)
    assert pair_features(u, v, "difference-product").tolist() == [[2, 2.5, 3, -1]]
    assert pair_features(u, v, "both-difference-product").tolist() == [[1, -2, 3, 0.5, 2, 2.5, 3, -1]]
