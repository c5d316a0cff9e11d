"""The losses against loops written from the papers' formulas, in plain Python floats."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sentloom.losses import (
    NoNegatives,
    Variant,
    angle,
    angle_similarity,
    candidate_scores,
    contrastive,
    cosent,
    cosines,
    guided_opt1,
    guided_opt3,
    info_nce,
    listwise_kl,
    margin_mse,
    negative_cosine,
    nt_xent,
    ranking_kl,
    supervised_contrastive,
)


def cos(u, v):
    """u.v / |u||v| of two lists."""
    dot = sum(a * b for a, b in zip(u, v, strict=True))
    return dot / math.sqrt(sum(a * a for a in u)) / math.sqrt(sum(b * b for b in v))


def minus_log_share(right, others):
    """-log exp(right) / (exp(right) + sum exp(others)): divided by exp(right), so that nothing grows beyond a float."""
    greatest = max([right, *others])
    total = math.exp(right - greatest) + sum(math.exp(other - greatest) for other in others)
    return -(right - greatest) + math.log(total)


def oracle_info_nce(a, p, tau, n=(), skip=frozenset()):
    """methods: l_i = -log exp(cos(a_i, p_i)/tau) / sum over every positive and every negative of the batch."""
    b, total = len(a), 0.0
    for i in range(b):
        others = [cos(a[i], p[j]) / tau for j in range(b) if j != i and (i, j) not in skip]
        others += [cos(a[i], n[j]) / tau for j in range(len(n)) if (i, b + j) not in skip]
        total += minus_log_share(cos(a[i], p[i]) / tau, others)
    return total / b


def oracle_nt_xent(x, y, tau, skip=frozenset()):
    """SG, eq. of L^base: for each of 2b vectors, Z is the sum over the 2b - 1 others; the partner is mu(x)."""
    b, z = len(x), [*x, *y]
    total = 0.0
    for m in range(2 * b):
        partner = m + b if m < b else m - b
        others = [cos(z[m], z[n]) / tau for n in range(2 * b) if n not in (m, partner) and (m % b, n % b) not in skip]
        assert skip or len(others) == 2 * (b - 1)
        total += minus_log_share(cos(z[m], z[partner]) / tau, others)
    return total / (2 * b)


def oracle_opt1(c, h, tau, skip=frozenset()):
    """Z^ = sum_{j != i} phi(c_i, c_j) + sum_j phi(c_i, h_j)."""
    b, total = len(c), 0.0
    for i in range(b):
        left = [j for j in range(b) if j != i and (i, j) not in skip]
        others = [cos(c[i], c[j]) / tau for j in left] + [cos(c[i], h[j]) / tau for j in left]
        total += minus_log_share(cos(c[i], h[i]) / tau, others)
    return total / b


def oracle_opt3(c, h, tau, skip=frozenset()):
    """L_{i,k} = -log phi(c_i, h_ik) / (phi(c_i, h_ik) + sum_{m != i} sum_n phi(c_i, h_mn)); mean over b (l + 1)."""
    b, layers, total = len(c), len(h[0]), 0.0
    for i in range(b):
        for k in range(layers):
            others = [
                cos(c[i], h[m][n]) / tau
                for m in range(b)
                if m != i and (i, m) not in skip
                for n in range(layers)
            ]  # fmt: skip
            total += minus_log_share(cos(c[i], h[i][k]) / tau, others)
    return total / (b * layers)


def vectors(seed, *shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def some_pairs(seed, rows, columns):
    """A random mask with a false diagonal, and the same as a set of (i, j)."""
    mask = torch.rand(rows, columns, generator=torch.Generator().manual_seed(seed)) < 0.3
    mask[torch.arange(rows), torch.arange(rows)] = False
    return mask, {(i, j) for i in range(rows) for j in range(columns) if mask[i, j]}


seeds = st.integers(0, 10_000)
sizes = st.integers(1, 6)
temperatures = st.sampled_from([0.001, 0.01, 0.05, 0.3, 1.0, 7.0])
few = settings(max_examples=40)


def check_close(loss, expected, tau):
    # a cosine is right to about 1e-15, and is divided by tau
    assert loss.item() == pytest.approx(expected, rel=1e-10, abs=1e-13 / tau)


@few
@given(seeds, sizes, sizes, st.integers(0, 4), temperatures, st.booleans())
def test_info_nce(seed, b, d, m, tau, masked):
    a, p, n = vectors(seed, b, d), vectors(seed + 1, b, d), vectors(seed + 2, m, d)
    same, skip = some_pairs(seed, b, b + m) if masked else (None, set())
    loss = info_nce(a, p, temperature=tau, negatives=n if m else None, same=same)
    check_close(loss, oracle_info_nce(a.tolist(), p.tolist(), tau, n.tolist(), skip), tau)


@few
@given(seeds, sizes, sizes, temperatures, st.booleans())
def test_nt_xent(seed, b, d, tau, masked):
    x, y = vectors(seed, b, d), vectors(seed + 1, b, d)
    same, skip = some_pairs(seed, b, b) if masked else (None, set())
    check_close(nt_xent(x, y, temperature=tau, same=same), oracle_nt_xent(x.tolist(), y.tolist(), tau, skip), tau)


@few
@given(seeds, sizes, sizes, temperatures, st.booleans())
def test_opt1(seed, b, d, tau, masked):
    c, h = vectors(seed, b, d), vectors(seed + 1, b, d)
    same, skip = some_pairs(seed, b, b) if masked else (None, set())
    check_close(guided_opt1(c, h, temperature=tau, same=same), oracle_opt1(c.tolist(), h.tolist(), tau, skip), tau)


@few
@given(seeds, sizes, sizes, st.integers(1, 5), temperatures, st.booleans())
def test_opt3(seed, b, d, layers, tau, masked):
    c, h = vectors(seed, b, d), vectors(seed + 1, b, layers, d)
    same, skip = some_pairs(seed, b, b) if masked else (None, set())
    check_close(guided_opt3(c, h, temperature=tau, same=same), oracle_opt3(c.tolist(), h.tolist(), tau, skip), tau)


@few
@given(seeds, sizes, sizes)
def test_negative_cosine(seed, b, d):
    p, z = vectors(seed, b, d), vectors(seed + 1, b, d)
    expected = -sum(cos(u, v) for u, v in zip(p.tolist(), z.tolist(), strict=True)) / b
    assert negative_cosine(p, z).item() == pytest.approx(expected, abs=1e-12)


@few
@given(seeds, sizes, sizes, sizes)
def test_cosines(seed, b, m, d):
    u, v = vectors(seed, b, d), vectors(seed + 1, m, d)
    expected = [[cos(row, column) for column in v.tolist()] for row in u.tolist()]
    assert cosines(u, v).tolist() == [pytest.approx(row, abs=1e-12) for row in expected]


def test_by_hand():
    # cosines 1 and 0, tau 1: each anchor has -log e / (e + 1)
    e = torch.eye(2, dtype=torch.float64)
    assert info_nce(e * 5, e, temperature=1.0).item() == pytest.approx(math.log(1 + math.exp(-1)))
    # partner at cosine 1, the two others at 0
    assert nt_xent(e, e * 3, temperature=1.0).item() == pytest.approx(math.log(1 + 2 * math.exp(-1)))
    assert guided_opt1(e, e, temperature=1.0).item() == pytest.approx(math.log(1 + 2 * math.exp(-1)))
    # two layers: own at 1 and 0, the other sentence's at 0 and 1
    h = torch.stack([e, e.flip(0)], dim=1)
    others = 1 + math.e
    expected = (math.log((math.e + others) / math.e) + math.log(1 + others)) / 2
    assert guided_opt3(e, h, temperature=1.0).item() == pytest.approx(expected)
    assert negative_cosine(e, torch.stack([e[0], -e[1]])).item() == pytest.approx(0)


LOSSES = {
    "info_nce": lambda u, v, w, same: info_nce(u, v, temperature=0.3, same=same),
    "info_nce with negatives": lambda u, v, w, same: info_nce(
        u, v, temperature=0.3, negatives=w.flatten(0, 1), same=None if same is None else same.repeat(1, w.shape[1] + 1)
    ),
    "nt_xent": lambda u, v, w, same: nt_xent(u, v, temperature=0.3, same=same),
    "opt1": lambda u, v, w, same: guided_opt1(u, v, temperature=0.3, same=same),
    "opt3": lambda u, v, w, same: guided_opt3(u, w, temperature=0.3, same=same),
}


@pytest.mark.parametrize("mask", ["none", "some", "all"])
@pytest.mark.parametrize("name", LOSSES)
def test_gradients(name, mask):
    same = {"none": None, "some": some_pairs(5, 4, 4)[0], "all": ~torch.eye(4, dtype=torch.bool)}[mask]
    inputs = [vectors(i, *shape).requires_grad_() for i, shape in enumerate([(4, 3), (4, 3), (4, 2, 3)])]
    assert torch.autograd.gradcheck(lambda u, v, w: LOSSES[name](u, v, w, same), inputs)


@pytest.mark.parametrize("m", [0, 1, 7])
def test_gradients_with_a_queue_of_any_size_its_mask_and_a_learned_temperature(m):
    """As cross-lingual calls it: the queue's entries and the frozen sources are constants."""
    t, s, queue = vectors(1, 4, 3).requires_grad_(), vectors(2, 4, 3), vectors(3, m, 3)
    theta = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    same, skip = some_pairs(5, 4, 4 + m)

    def loss(t, theta):
        return info_nce(t, s, temperature=torch.exp(-theta), negatives=queue, same=same)

    assert torch.autograd.gradcheck(loss, (t, theta))
    expected = oracle_info_nce(t.tolist(), s.tolist(), math.exp(-0.7), queue.tolist(), skip)
    check_close(loss(t, theta), expected, math.exp(-0.7))


def test_negative_cosine_gradient_reaches_the_prediction_alone():
    p, z = vectors(1, 4, 3).requires_grad_(), vectors(2, 4, 3).requires_grad_()
    assert torch.autograd.gradcheck(lambda u: negative_cosine(u, z), p)
    negative_cosine(p, z).backward()
    assert p.grad is not None
    assert z.grad is None


def test_the_temperature_may_be_learned():
    tau = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    a, p = vectors(1, 4, 3), vectors(2, 4, 3)
    assert torch.autograd.gradcheck(lambda t: info_nce(a, p, temperature=t), tau)


@pytest.mark.parametrize("tau", [0.01, 0.001])
@pytest.mark.parametrize("name", ["info_nce", "nt_xent", "opt1", "opt3"])
def test_extreme_temperatures_stay_finite_in_float32(name, tau):
    u = vectors(1, 16, 8).float().requires_grad_()
    v = -u.detach()  # the worst: every positive is at cosine -1
    loss = {
        "info_nce": lambda: info_nce(u, v, temperature=tau),
        "nt_xent": lambda: nt_xent(u, v, temperature=tau),
        "opt1": lambda: guided_opt1(u, v, temperature=tau),
        "opt3": lambda: guided_opt3(u, v[:, None].expand(-1, 13, -1), temperature=tau),
    }[name]()
    loss.backward()
    assert torch.isfinite(loss)
    assert loss > 1 / tau  # near 2 / tau: not cut off at some greatest value
    assert torch.isfinite(u.grad).all()
    assert u.grad.abs().max() > 0


@pytest.mark.parametrize("name", LOSSES)
def test_a_batch_of_equal_texts_has_no_loss_and_no_gradient(name):
    inputs = [vectors(i, *shape).requires_grad_() for i, shape in enumerate([(3, 4), (3, 4), (3, 2, 4)])]
    loss = LOSSES[name](*inputs, ~torch.eye(3, dtype=torch.bool))
    if name != "info_nce with negatives":  # there each anchor keeps the negatives of its own row
        loss.backward()
        assert loss.item() == pytest.approx(0, abs=1e-12)
        gradients = [x.grad for x in inputs if x.grad is not None]
        assert all(gradient.abs().max() < 1e-12 for gradient in gradients)


def test_the_positive_is_never_masked():
    a, p, everything = vectors(1, 3, 4), vectors(2, 3, 4), torch.ones(3, 3, dtype=torch.bool)
    for loss in (info_nce, nt_xent, guided_opt1):
        assert loss(a, p, temperature=0.1, same=everything).item() == pytest.approx(0, abs=1e-12)
    assert guided_opt3(a, p[:, None], temperature=0.1, same=everything).item() == pytest.approx(0, abs=1e-12)


def test_a_mask_is_left_as_it_was():
    same, _ = some_pairs(3, 4, 4)
    before = same.clone()
    for loss in (info_nce, nt_xent, guided_opt1):
        loss(vectors(1, 4, 3), vectors(2, 4, 3), temperature=0.1, same=same)
    guided_opt3(vectors(1, 4, 3), vectors(2, 4, 2, 3), temperature=0.1, same=same)
    assert torch.equal(same, before)


# What the papers' own code gets wrong.


def gradient_of(loss, *inputs):
    leaves = [x.clone().requires_grad_() for x in inputs]
    loss(*leaves).backward()
    return [x.grad for x in leaves]


def test_nt_xent_has_2b_anchors_and_2b_minus_2_negatives():
    # With all cosines equal each of the 2b rows has 1 + 2(b - 1) equal candidates, whatever tau.
    for b in range(1, 7):
        ones = torch.ones(b, 5, dtype=torch.float64)
        assert nt_xent(ones, ones, temperature=0.1).item() == pytest.approx(math.log(2 * b - 1), abs=1e-12)
    # Both sides are anchors: the loss is symmetric.
    x, y = vectors(1, 5, 4), vectors(2, 5, 4)
    assert nt_xent(x, y, temperature=0.2).item() == pytest.approx(nt_xent(y, x, temperature=0.2).item(), rel=1e-12)


def test_opt2_has_b_minus_1_negatives_and_each_counts_for_every_anchor():
    for b in range(1, 7):
        ones = torch.ones(b, 5, dtype=torch.float64)
        assert info_nce(ones, ones, temperature=0.1).item() == pytest.approx(math.log(b), abs=1e-12)
    c, h = vectors(1, 5, 4), vectors(2, 5, 4)
    for changed in range(5):  # the last, and the first: no column is left out
        other = h.clone()
        other[changed] = vectors(3, 4)
        for anchor in range(5):

            def one(h, anchor=anchor):
                order = [anchor, *(j for j in range(5) if j != anchor)]
                return _loss_of_first(c[order], h[order])

            assert abs(one(h) - one(other)) > 1e-6


def _loss_of_first(c, h):
    """OPT2 of the first anchor alone: the others' h as negatives without anchors of their own."""
    return info_nce(c[:1], h[:1], temperature=0.5, negatives=h[1:]).item()


def test_opt1_counts_both_kinds_of_negatives():
    for b in range(1, 7):
        ones = torch.ones(b, 5, dtype=torch.float64)
        assert guided_opt1(ones, ones, temperature=0.1).item() == pytest.approx(math.log(2 * b - 1), abs=1e-12)


def test_opt3_leaves_out_the_other_layers_of_the_same_sentence():
    for b in range(1, 5):
        for layers in range(1, 5):
            c, h = torch.ones(b, 3, dtype=torch.float64), torch.ones(b, layers, 3, dtype=torch.float64)
            expected = math.log(1 + (b - 1) * layers)
            assert guided_opt3(c, h, temperature=0.1).item() == pytest.approx(expected, abs=1e-12)
    # One sentence has no negatives, however many layers: no loss. A layer only pulls, it never pushes its own c.
    assert guided_opt3(vectors(1, 1, 4), vectors(2, 1, 6, 4), temperature=0.1).item() == pytest.approx(0, abs=1e-12)
    c, h = vectors(3, 1, 4), vectors(4, 1, 6, 4)
    (gradient,) = gradient_of(lambda u: guided_opt3(u, h, temperature=0.1), c)
    assert gradient.abs().max() == 0


def test_opt3_of_one_layer_is_opt2():
    c, h = vectors(1, 5, 4), vectors(2, 5, 4)
    expected = info_nce(c, h, temperature=0.05).item()
    assert guided_opt3(c, h[:, None], temperature=0.05).item() == pytest.approx(expected, rel=1e-12)


# ---- Pairs and triplets


def oracle_contrastive(a, p, n, tau, *, margin=0.0, own_weight=0.0, skip=frozenset(), barred=frozenset(), both=False):
    """Sentence-T5 eq. 2 with SimCSE's weight: all positives and all hard negatives of the batch; t5x's second way."""
    b, total = len(a), 0.0
    for i in range(b):
        others = [cos(a[i], p[j]) / tau for j in range(b) if j != i and (i, j) not in skip]
        hard = [(j, k) for j in range(b) for k in range(len(n[j]) if n else 0) if (i, j, k) not in barred]
        others += [cos(a[i], n[j][k]) / tau + (own_weight if i == j else 0.0) for j, k in hard]
        total += minus_log_share((cos(a[i], p[i]) - margin) / tau, others)
        if both:
            back = [cos(p[i], a[j]) / tau for j in range(b) if j != i and (j, i) not in skip]
            total += minus_log_share((cos(p[i], a[i]) - margin) / tau, back)
    return total / b


@settings(max_examples=25)
@given(st.data())
def test_contrastive_equals_the_loops(data):
    b, m = data.draw(st.integers(1, 5)), data.draw(st.integers(0, 3))
    torch.manual_seed(data.draw(st.integers(0, 1000)))
    a, p, n = (torch.randn(*shape, 4, dtype=torch.float64) for shape in ((b,), (b,), (b, m)))
    tau = data.draw(st.sampled_from([0.01, 0.05, 1.0]))
    margin, own_weight = data.draw(st.sampled_from([0.0, 0.3])), data.draw(st.sampled_from([0.0, 1.5]))
    both = data.draw(st.booleans())
    same = torch.rand(b, b) < data.draw(st.sampled_from([0.0, 0.4]))
    barred = torch.rand(b, b * m) < data.draw(st.sampled_from([0.0, 0.4]))
    skip = {(i, j) for i in range(b) for j in range(b) if same[i, j]}
    out = {(i, j, k) for i in range(b) for j in range(b) for k in range(m) if barred[i, j * m + k]}
    expected = oracle_contrastive(
        *(x.tolist() for x in (a, p, n)), tau, margin=margin, own_weight=own_weight, skip=skip, barred=out, both=both
    )
    loss = contrastive(
        a, p, n if m else None, temperature=tau, variant=Variant(margin, own_weight, both_ways=both),
        excluded=NoNegatives(same, barred=barred if m else None),
    )  # fmt: skip
    assert loss.item() == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_contrastive_gradients():
    torch.manual_seed(0)
    a, p, n = (torch.randn(*shape, 3, dtype=torch.float64, requires_grad=True) for shape in ((3,), (3,), (3, 2)))
    tau = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    barred = torch.zeros(3, 6, dtype=torch.bool)
    barred[0, 2] = True
    assert torch.autograd.gradcheck(
        lambda a, p, n, tau: contrastive(
            a, p, n, temperature=tau, variant=Variant(0.1, 0.7, both_ways=True), excluded=NoNegatives(barred=barred)
        ),
        (a, p, n, tau),
    )


def test_without_extras_contrastive_is_info_nce():
    torch.manual_seed(0)
    a, p = torch.randn(2, 5, 3)
    assert torch.equal(contrastive(a, p, temperature=0.1), info_nce(a, p, temperature=0.1))


# ---- Labels


def oracle_supervised(z, labels, tau, below, skip=frozenset()):
    """Khosla's eq. 2: A(i) without i; SINCERE: of P(i), only the positive itself. Rows in `skip` are in neither."""
    losses = []
    for i in range(len(z)):
        others = [j for j in range(len(z)) if j != i and (i, j) not in skip]
        positives = [j for j in others if labels[j] == labels[i]]
        negatives = [cos(z[i], z[j]) / tau for j in others if labels[j] != labels[i]]
        if positives:
            right = [cos(z[i], z[p]) / tau for p in positives]
            more = [right[:at] + right[at + 1 :] if below else [] for at in range(len(right))]
            own = [minus_log_share(one, negatives + rest) for one, rest in zip(right, more, strict=True)]
            losses.append(sum(own) / len(own))
    return sum(losses) / len(losses) if losses else 0.0


def masks(labels, skip=None):
    alike = torch.tensor([[one == other for one in labels] for other in labels])
    free = ~torch.eye(len(labels), dtype=torch.bool) if skip is None else ~torch.eye(len(labels), dtype=bool) & ~skip
    return alike & free, ~alike & free


@few
@given(seeds, st.lists(st.integers(0, 3), min_size=1, max_size=7), sizes, temperatures, st.booleans(), st.booleans())
def test_supervised(seed, labels, d, tau, below, masked):
    z = vectors(seed, len(labels), d)
    same, skip = some_pairs(seed, len(labels), len(labels)) if masked else (None, set())
    loss = supervised_contrastive(z, *masks(labels, same), temperature=tau, positives_below=below)
    check_close(loss, oracle_supervised(z.tolist(), labels, tau, below, skip), tau)


def test_supervised_by_hand():
    # two labels on two axes: positives at cosine 1, two negatives at 0; the paper's sum has the positive alone too
    z = torch.tensor([[1.0, 0], [2, 0], [0, 1], [0, 3]], dtype=torch.float64)
    for below in (False, True):
        loss = supervised_contrastive(z, *masks("aabb"), temperature=1.0, positives_below=below)
        assert loss.item() == pytest.approx(math.log(1 + 2 * math.exp(-1)))
    # three positives at cosine 1 and no negative: nothing to learn, but the paper's sum leaves log 2 of each other
    ones = torch.ones(3, 2, dtype=torch.float64)
    assert supervised_contrastive(ones, *masks("aaa"), temperature=1.0).item() == pytest.approx(0, abs=1e-12)
    loss = supervised_contrastive(ones, *masks("aaa"), temperature=1.0, positives_below=True)
    assert loss.item() == pytest.approx(math.log(2))


@pytest.mark.parametrize("below", [False, True])
@pytest.mark.parametrize("labels", ["aabbc", "aaaaa", "abbbb", "aabcd"])
def test_supervised_gradients(labels, below):
    z = vectors(1, 5, 3).requires_grad_()
    assert torch.autograd.gradcheck(
        lambda z: supervised_contrastive(z, *masks(labels), temperature=0.3, positives_below=below), z
    )


@pytest.mark.parametrize("labels", ["abcde", "a"])
def test_labels_of_one_row_each_teach_nothing(labels):
    z = vectors(1, len(labels), 3).requires_grad_()
    loss = supervised_contrastive(z, *masks(labels), temperature=0.1)
    loss.backward()
    assert loss.item() == 0
    assert z.grad.abs().max() == 0


def test_near_positives_push_each_other_away_in_the_papers_sum_alone():
    # the anchor's near positive, beside a far one and a negative
    z = torch.tensor([[1.0, 0, 0], [1, 0.1, 0], [0, 1, 0], [0, 0, 1]], dtype=torch.float64)
    pull = {}
    for below in (False, True):

        def loss(z, below=below):
            positives, negatives = masks("aaab")
            first = torch.zeros(4, 1, dtype=torch.bool)
            first[0] = True  # one anchor
            return supervised_contrastive(z, positives & first, negatives, temperature=0.1, positives_below=below)

        (gradient,) = gradient_of(loss, z)
        pull[below] = -(gradient[1] @ z[0]).item()  # of the near positive, towards the anchor
    assert pull[False] > 0 > pull[True]


# ---- Scored pairs


def oracle_in_order(similarities, scores):
    rows = range(len(scores))
    terms = [similarities[j] - similarities[i] for i in rows for j in rows if scores[i] > scores[j]]
    return minus_log_share(0.0, terms)  # log(1 + sum exp(terms))


def oracle_angle(x, y):
    """|sum of the real and imaginary parts of z/w / (|z|/|w|)| in Python's complex numbers."""
    half = len(x) // 2
    z, w = ([complex(*parts) for parts in zip(v[:half], v[half:], strict=True)] for v in (x, y))
    lengths = [math.sqrt(sum(abs(one) ** 2 for one in v)) for v in (z, w)]
    products = [one * other.conjugate() / lengths[0] / lengths[1] for one, other in zip(z, w, strict=True)]
    return abs(sum(one.real + one.imag for one in products))


some_scores = st.lists(st.sampled_from([0, 1, 1.5, 2, 5, -3, 1e6]), min_size=1, max_size=6)


@few
@given(seeds, some_scores, st.integers(1, 3), temperatures)
def test_cosent_and_angle(seed, scores, half, tau):
    x, y = vectors(seed, len(scores), 2 * half), vectors(seed + 1, len(scores), 2 * half)
    rows = list(zip(x.tolist(), y.tolist(), strict=True))
    s = torch.tensor(scores, dtype=torch.float64)
    check_close(cosent(x, y, s, temperature=tau), oracle_in_order([cos(*row) / tau for row in rows], scores), tau)
    check_close(
        angle(x, y, s, temperature=tau), oracle_in_order([oracle_angle(*row) / tau for row in rows], scores), tau
    )


def test_cosent_by_hand():
    # cosines 1 and 0 in the wrong order and in the right one
    x, y = torch.tensor([[1.0, 0], [1, 0]]), torch.tensor([[3.0, 0], [0, 2]])
    assert cosent(x, y, torch.tensor([0.0, 1]), temperature=0.5).item() == pytest.approx(math.log(1 + math.exp(2)))
    assert cosent(x, y, torch.tensor([9.0, 8]), temperature=0.5).item() == pytest.approx(math.log(1 + math.exp(-2)))
    # 1 and i: z/w is -i; 1 and 1: z/w is 1; 1 + i and 1 + i: |z/w| is 1 as well
    assert angle_similarity(torch.tensor([[1.0, 1]]), torch.tensor([[2.0, 2]])).item() == pytest.approx(1)
    assert angle_similarity(torch.tensor([[1.0, 0]]), torch.tensor([[-1.0, 1]])).item() == pytest.approx(
        2 / math.sqrt(2)
    )


@pytest.mark.parametrize("loss", [cosent, angle])
def test_gradients_of_scored_pairs(loss):
    x, y = vectors(1, 5, 4).requires_grad_(), vectors(2, 5, 4).requires_grad_()
    scores = torch.tensor([1.0, 0, 1, 4, 2.5])
    assert torch.autograd.gradcheck(lambda x, y: loss(x, y, scores, temperature=0.3), (x, y))


@pytest.mark.parametrize("loss", [cosent, angle])
@pytest.mark.parametrize("rows", [1, 4])
def test_equal_scores_have_no_loss_and_no_gradient(loss, rows):
    x, y = vectors(1, rows, 4).requires_grad_(), vectors(2, rows, 4).requires_grad_()
    value = loss(x, y, torch.full((rows,), 2.0), temperature=0.05)
    value.backward()
    assert value.item() == 0
    assert x.grad.abs().max() == y.grad.abs().max() == 0


@given(seeds, st.floats(0.01, 1000), st.floats(-1000, 1000))
def test_the_scale_of_scores_does_not_matter(seed, factor, shift):
    x, y, s = vectors(seed, 5, 4), vectors(seed + 1, 5, 4), torch.tensor([0.0, 1, 1, 2, 5], dtype=torch.float64)
    one, other = (cosent(x, y, scores, temperature=0.05) for scores in (s, s * factor + shift))
    assert one.item() == other.item()


# ---- A teacher


def oracle_margin_mse(s, t):
    """GPL: the squared difference of the margins of student and teacher, mean over all triplets."""
    errors = [
        (own[0] - own[k]) - (theirs[0] - theirs[k])
        for own, theirs in zip(s, t, strict=True)
        for k in range(1, len(own))
        if not math.isnan(theirs[k])
    ]
    return sum(error**2 for error in errors) / len(errors)


def oracle_listwise_kl(s, t, tau, teacher_tau):
    """sum over candidates of P_t log(P_t / P_s), mean over rows."""
    total = 0.0
    for own, theirs in zip(s, t, strict=True):
        there = [k for k in range(len(own)) if not math.isnan(theirs[k])]
        for k in there:
            log_t, log_s = (
                -minus_log_share(scores[k] / over, [scores[j] / over for j in there if j != k])
                for scores, over in ((theirs, teacher_tau), (own, tau))
            )
            total += math.exp(log_t) * (log_t - log_s)
    return total / len(s)


def some_scores(seed, b, m, absent):
    """Scores of student and teacher, (b, 1 + m); some of the teacher's negatives are NaN, never the first."""
    s, t = vectors(seed, b, 1 + m), 5 * vectors(seed + 1, b, 1 + m)
    missing = torch.rand(b, 1 + m, generator=torch.Generator().manual_seed(seed)) < (0.4 if absent else 0)
    missing[:, :2] = False
    return s, t.masked_fill(missing, math.nan)


@few
@given(seeds, sizes, sizes, st.booleans())
def test_margin_mse(seed, b, m, absent):
    s, t = some_scores(seed, b, m, absent)
    assert margin_mse(s, t).item() == pytest.approx(oracle_margin_mse(s.tolist(), t.tolist()), rel=1e-12)


@few
@given(seeds, sizes, sizes, st.booleans(), temperatures, st.sampled_from([0.5, 1.0, 10.0]))
def test_listwise_kl(seed, b, m, absent, tau, teacher_tau):
    s, t = some_scores(seed, b, m, absent)
    loss = listwise_kl(s, t, temperature=tau, teacher_temperature=teacher_tau)
    check_close(loss, oracle_listwise_kl(s.tolist(), t.tolist(), tau, teacher_tau), tau)


def test_a_teachers_losses_by_hand():
    s, t = torch.tensor([[3.0, 1.0, 7.0]]), torch.tensor([[5.0, 4.0, math.nan]])
    assert margin_mse(s, t).item() == 1.0  # (2 - 1)^2
    certain, even = torch.tensor([[1.0, 0.0, 9.0]]), torch.tensor([[0.0, 0.0, math.nan]])
    # P_t = (1/2, 1/2), P_s = (e, 1)/(1 + e): log(1/2) - 1/2 log(e/(1 + e)) - 1/2 log(1/(1 + e))
    expected = math.log(0.5) - 0.5 + math.log(1 + math.e)
    loss = listwise_kl(certain, even, temperature=1.0, teacher_temperature=1.0).item()
    assert loss == pytest.approx(expected, rel=1e-6)


def test_a_student_that_agrees_has_no_loss():
    s, t = some_scores(3, 4, 3, absent=True)
    shifted = t + vectors(4, 4, 1)  # the level of a row's scores does not matter
    assert margin_mse(shifted.nan_to_num(0), t).item() == pytest.approx(0, abs=1e-25)
    agreeing = shifted.nan_to_num(0) / 10
    assert listwise_kl(agreeing, t, temperature=0.1, teacher_temperature=1.0).item() == pytest.approx(0, abs=1e-12)
    assert listwise_kl(s, t, temperature=0.1, teacher_temperature=1.0).item() > 0.1


@pytest.mark.parametrize("absent", [False, True])
def test_gradients_of_a_teachers_losses(absent):
    s, t = some_scores(0, 3, 3, absent)
    s.requires_grad_()
    assert torch.autograd.gradcheck(lambda s: margin_mse(s, t), s)
    assert torch.autograd.gradcheck(lambda s: listwise_kl(s, t, temperature=0.3, teacher_temperature=2.0), s)


@few
@given(seeds, sizes, sizes, st.booleans())
def test_ranking_of_others_as_the_source_has_it(seed, b, m, masked):
    t, t_others, s, s_others = (vectors(seed + k, n, 3 + k // 2) for k, n in enumerate((b, m, b, m)))
    absent = torch.rand(b, m, generator=torch.Generator().manual_seed(seed)) < 0.4 if masked else None
    expected = []
    for i in range(b):
        there = [j for j in range(m) if absent is None or not absent[i, j]]
        scores = [[cos(x[i].tolist(), y[j].tolist()) / 0.3 for j in there] for x, y in ((t, t_others), (s, s_others))]
        shares = [[math.exp(one) / sum(map(math.exp, own)) for one in own] for own in scores]
        if len(there) > 1:
            expected.append(sum(p * math.log(p / q) for q, p in zip(*shares, strict=True)))
    loss = ranking_kl(t, t_others, s, s_others, temperature=0.3, absent=absent)
    assert loss.item() == pytest.approx(sum(expected) / max(1, len(expected)), abs=1e-9)


@pytest.mark.parametrize("masked", [False, True])
def test_gradients_of_a_ranking(masked):
    t, t_others, s, s_others = (vectors(seed, n, 3) for seed, n in enumerate((2, 4, 2, 4)))
    absent = torch.tensor([[True, False, False, False], [False, True, True, True]]) if masked else None
    inputs = [one.requires_grad_() for one in (t, t_others)]
    assert torch.autograd.gradcheck(
        lambda t, t_others: ranking_kl(t, t_others, s, s_others, temperature=0.3, absent=absent), inputs
    )


@few
@given(seeds, sizes, sizes, sizes)
def test_candidate_scores(seed, b, m, d):
    q, p, n = vectors(seed, b, d), vectors(seed + 1, b, d), vectors(seed + 2, b, m, d)
    lists = [[p[i].tolist(), *n[i].tolist()] for i in range(b)]
    expected = [[cos(q[i].tolist(), one) for one in lists[i]] for i in range(b)]
    torch.testing.assert_close(candidate_scores(q, p, n).tolist(), expected)
    dots = [[sum(x * y for x, y in zip(q[i].tolist(), one, strict=True)) for one in lists[i]] for i in range(b)]
    torch.testing.assert_close(candidate_scores(q, p, n, similarity="dot").tolist(), dots)
    inputs = [one.requires_grad_() for one in (q, p, n)]
    assert torch.autograd.gradcheck(candidate_scores, inputs)
