"""AnglE: three losses over scored pairs."""

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from scipy.stats import spearmanr

from sentloom.data.batches import Batch
from sentloom.encoder.heads import Projection
from sentloom.errors import InputError
from sentloom.methods.angle import Angle, AngleOptions
from tests.methods.conftest import optimise
from tests.methods.test_cosent import SCORES, scored_batch, similarities
from tests.test_losses import cos, oracle_angle, oracle_in_order, oracle_info_nce

ALONE = {"cosine_weight": 0, "in_batch_weight": 0, "angle_weight": 0}


def loss_of(encoder, rows, **options):
    method = Angle(encoder, AngleOptions(**options)).double().eval()
    embeddings = method.embed(rows)
    return method.loss(embeddings, rows).item(), [vector.tolist() for vector in embeddings]


def test_each_part_equals_its_formula_and_they_add_up(encoder):
    rows = scored_batch()
    cosine, (x, y) = loss_of(encoder, rows, **ALONE | {"cosine_weight": 1})
    pairs = list(zip(x, y, strict=True))
    assert cosine == pytest.approx(oracle_in_order([cos(*pair) * 20 for pair in pairs], SCORES), rel=1e-9)
    angle, _ = loss_of(encoder, rows, **ALONE | {"angle_weight": 1})
    assert angle == pytest.approx(oracle_in_order([oracle_angle(*pair) for pair in pairs], SCORES), rel=1e-9)
    ibn, _ = loss_of(encoder, rows, **ALONE | {"in_batch_weight": 1})
    high, low = [1, 5], [0, 2, 3, 4, 6, 7]  # scores of at least 4, from 0 to 5
    ways = [
        oracle_info_nce([u[i] for i in high], [v[i] for i in high], 0.05, [v[i] for i in low])
        for u, v in ((x, y), (y, x))
    ]
    assert ibn == pytest.approx(sum(ways) / 2, rel=1e-9)
    whole, _ = loss_of(encoder, rows, cosine_weight=2, in_batch_weight=3, angle_weight=0.5)
    assert whole == pytest.approx(2 * cosine + 3 * ibn + 0.5 * angle, rel=1e-9)


def test_positives_are_found_on_any_scale_and_equal_scores_have_none(encoder):
    method = Angle(encoder, AngleOptions())
    assert method.positive(scored_batch([0, 1, 1, 0])).tolist() == [False, True, True, False]
    assert method.positive(scored_batch([-1, 60, 100, 81])).tolist() == [False, False, True, True]
    assert not method.positive(scored_batch([5, 5, 5])).any()
    rows = scored_batch([5.0] * 8)
    loss = method.loss(method.embed(rows), rows)
    loss.backward()
    assert loss.item() == 0
    assert all(torch.count_nonzero(p.grad) == 0 for p in encoder.parameters() if p.grad is not None)


def test_rows_with_the_same_text_are_no_negatives(encoder):
    texts = {"sentence1": ["one cat", "two dogs", "a bird"], "sentence2": ["a cat", "ONE  cat", "a plane"]}
    rows = Batch(texts, np.arange(3), np.arange(3), (0, 0), scores=[5, 5, 0])
    loss, (x, y) = loss_of(encoder, rows, **ALONE | {"in_batch_weight": 1})
    ways = [oracle_info_nce(u[:2], v[:2], 0.05, v[2:], skip={(0, 1), (1, 0)}) for u, v in ((x, y), (y, x))]
    assert loss == pytest.approx(sum(ways) / 2, rel=1e-9)


def test_it_learns_an_order(encoder):
    method = Angle(encoder, AngleOptions(in_batch_weight=0))
    encoder.backbone.dropout = 0.0
    optimise(method, [scored_batch()] * 30, rate=3e-3)
    assert spearmanr(similarities(encoder), SCORES)[0] > 0.9


def test_what_is_refused(encoder):
    with pytest.raises(ValidationError, match="all three weights are 0"):
        AngleOptions(**ALONE)
    encoder.heads.append(Projection(encoder.dimension, 7))
    with pytest.raises(InputError, match="vectors of 7 dimensions have no two halves"):
        Angle(encoder, AngleOptions())
