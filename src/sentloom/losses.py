"""The papers' losses as pure functions of tensors, with the papers' symbols.

Shapes: b rows of a batch, d width of a vector, m more candidates, K layers. `same` marks candidates that share a text
with the row and so are not negatives. The positive itself is never masked.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor


def cosines(u: Tensor, v: Tensor) -> Tensor:
    """cos(u_i, v_j): (b, d), (m, d) -> (b, m)."""
    return F.normalize(u, dim=-1) @ F.normalize(v, dim=-1).T


def info_nce(
    anchor: Tensor,  # (b, d)
    positive: Tensor,  # (b, d)
    *,
    temperature: float | Tensor,
    negatives: Tensor | None = None,  # (m, d), negatives of every anchor
    same: Tensor | None = None,  # (b, b + m), true: mask
) -> Tensor:
    """-log exp(cos(a_i, p_i)/tau) / sum_j exp(cos(a_i, p_j)/tau), with the negatives added to the sum; mean over i."""
    candidates = positive if negatives is None else torch.cat([positive, negatives])
    logits = cosines(anchor, candidates) / temperature
    right = torch.arange(len(anchor), device=anchor.device)
    return F.cross_entropy(_without(logits, same, right), right)


@dataclass(frozen=True)
class NoNegatives:
    """Which candidates of a contrastive loss are no negatives; None: all of them are."""

    same: Tensor | None = None  # (b, b), of an anchor among the positives of others
    same_back: Tensor | None = None  # (b, b), of a positive among the anchors of others; None: `same` transposed
    barred: Tensor | None = None  # (b, b * m), hard negatives that are missing or not negatives


@dataclass(frozen=True)
class Variant:
    """What papers add to InfoNCE."""

    margin: float = 0.0  # subtracted from the positives' cosines
    own_weight: float = 0.0  # added to the logits of an anchor's own hard negatives
    both_ways: bool = False  # with the loss from positives to anchors, which has no hard negatives (a sum, as in t5x)


ALL, PLAIN = NoNegatives(), Variant()


def contrastive(
    anchor: Tensor,  # (b, d)
    positive: Tensor,  # (b, d)
    negatives: Tensor | None = None,  # (b, m, d), the hard negatives of each anchor; every anchor sees all of them
    *,
    temperature: float | Tensor,
    variant: Variant = PLAIN,
    excluded: NoNegatives = ALL,
) -> Tensor:
    """InfoNCE with hard negatives: Sentence-T5's eq. 2, SimCSE's eq. 5, GenSE's eq. 2."""
    same, barred = excluded.same, excluded.barred
    right = torch.arange(len(anchor), device=anchor.device)
    own = torch.eye(len(anchor), dtype=anchor.dtype, device=anchor.device)
    scores = (cosines(anchor, positive) - variant.margin * own) / temperature
    logits = _without(scores, same, right)
    if negatives is not None:
        hard = cosines(anchor, negatives.flatten(0, 1)) / temperature
        hard = hard + variant.own_weight * own.repeat_interleave(negatives.shape[1], dim=1)
        logits = torch.cat([logits, hard if barred is None else hard.masked_fill(barred, -torch.inf)], dim=1)
    loss = F.cross_entropy(logits, right)
    if variant.both_ways:
        back = same.T if same is not None and excluded.same_back is None else excluded.same_back
        loss = loss + F.cross_entropy(_without(scores.T, back, right), right)
    return loss


def nt_xent(x: Tensor, y: Tensor, *, temperature: float, same: Tensor | None = None) -> Tensor:
    """InfoNCE over the 2b vectors x and y: each against its partner and 2(b - 1) others. `same` is (b, b)."""
    z = torch.cat([x, y])  # (2b, d)
    b = len(x)
    right = torch.arange(2 * b, device=z.device).roll(b)  # the partner of i is i + b, and back
    logits = cosines(z, z) / temperature
    logits = logits.masked_fill(torch.eye(2 * b, dtype=torch.bool, device=z.device), -torch.inf)
    return F.cross_entropy(_without(logits, None if same is None else same.repeat(2, 2), right), right)


def guided_opt1(c: Tensor, h: Tensor, *, temperature: float, same: Tensor | None = None) -> Tensor:
    """Self-guided, L^opt1: anchors c_i only; negatives are c_j and h_j, j != i. All (b, d)."""
    b = len(c)
    right = torch.arange(b, device=c.device)
    itself = torch.eye(b, dtype=torch.bool, device=c.device)
    to_c = cosines(c, c).masked_fill(itself, -torch.inf)
    logits = torch.cat([cosines(c, h), to_c], dim=1) / temperature  # (b, 2b)
    return F.cross_entropy(_without(logits, None if same is None else same.repeat(1, 2), right), right)


def guided_opt3(c: Tensor, h: Tensor, *, temperature: float, same: Tensor | None = None) -> Tensor:
    """Self-guided, L^opt3: for each sentence i and layer k, phi(c_i, h_ik) against all layers of the other sentences.

    c (b, d), h (b, K, d); other layers of the same sentence are not in the denominator; mean over b * K.
    """
    b, layers = h.shape[:2]
    phi = (cosines(c, h.flatten(0, 1)) / temperature).view(b, b, layers)  # log phi(c_i, h_mn)
    own = torch.eye(b, dtype=torch.bool, device=c.device)
    barred = own if same is None else own | same
    others = phi.masked_fill(barred[..., None], -torch.inf).flatten(1).logsumexp(dim=1)  # (b,)
    positive = phi[own]  # (b, K), row i is log phi(c_i, h_ik)
    return (torch.logaddexp(positive, others[:, None]) - positive).mean()


def supervised_contrastive(
    z: Tensor,  # (b, d)
    positives: Tensor,  # (b, b), row i is true at P(i): the other rows with its label
    negatives: Tensor,  # (b, b), true at the rows with another label
    *,
    temperature: float,
    positives_below: bool = False,
) -> Tensor:
    """Khosla et al.'s eq. 2, L_out: mean over p in P(i) of -log exp(z_i.z_p/tau) / sum_a exp(z_i.z_a/tau).

    a runs over the negatives and p itself (SINCERE, Feeney and Hughes, 2024), or, as in eq. 2, over all of P(i)
    (`positives_below`), where near positives push each other away. Mean over the rows that have a positive, 0 if none.
    """
    logits = cosines(z, z) / temperature
    below = logits.masked_fill(~(negatives | positives if positives_below else negatives), -torch.inf)
    rest = below.logsumexp(dim=1, keepdim=True)  # (b, 1), minus infinity if there is nothing
    losses = (rest if positives_below else torch.logaddexp(logits, rest)) - logits  # (b, b), of each row as a positive
    counts = positives.sum(dim=1)
    per_row = losses.masked_fill(~positives, 0).sum(dim=1)[counts > 0] / counts[counts > 0]
    return per_row.mean() if len(per_row) else logits.sum() * 0


def cosent(x: Tensor, y: Tensor, scores: Tensor, *, temperature: float) -> Tensor:
    """CoSENT, AnglE's L_cos: log(1 + sum over s_i > s_j of exp((cos(x_j, y_j) - cos(x_i, y_i))/tau)).

    x and y are (b, d), the scores s (b,) on any scale. Equal scores contribute nothing.
    """
    return _in_order(F.cosine_similarity(x, y, dim=-1) / temperature, scores)


def angle(x: Tensor, y: Tensor, scores: Tensor, *, temperature: float) -> Tensor:
    """AnglE's L_angle: as `cosent`, with `angle_similarity` instead of the cosine."""
    return _in_order(angle_similarity(x, y) / temperature, scores)


def angle_similarity(x: Tensor, y: Tensor) -> Tensor:
    """How close the angles of two vectors are in complex space, (b,).

    z = x and w = y are complex numbers: the halves of a vector are their real and imaginary parts. z/w is divided by
    |z|/|w|, and its real and imaginary parts are summed over the dimensions, as in the released code. The absolute sum
    is greatest where the angles agree; the paper prints it as a difference of angles, with the opposite sign.
    """
    (a, b), (c, d) = x.chunk(2, dim=-1), y.chunk(2, dim=-1)
    lengths = x.norm(dim=-1, keepdim=True) * y.norm(dim=-1, keepdim=True)
    re, im = a * c + b * d, b * c - a * d  # of z times the conjugate of w
    return ((re + im) / lengths.clamp_min(1e-12)).sum(dim=-1).abs()


def _in_order(similarities: Tensor, scores: Tensor) -> Tensor:
    """log(1 + sum over s_i > s_j of exp(similarity_j - similarity_i)): 0, without a gradient, if no scores differ."""
    differences = similarities[None, :] - similarities[:, None]  # (i, j)
    above = scores[:, None] > scores[None, :]
    return F.pad(differences[above], (1, 0)).logsumexp(dim=0)  # exp(0) is the 1


def candidate_scores(q: Tensor, p: Tensor, n: Tensor, *, similarity: str = "cosine") -> Tensor:
    """s(q_i, p_i), s(q_i, n_i1) ... s(q_i, n_im): (b, d), (b, d), (b, m, d) -> (b, 1 + m); cosines or dot products."""
    candidates = torch.cat([p[:, None], n], dim=1)
    if similarity == "cosine":
        q, candidates = F.normalize(q, dim=-1), F.normalize(candidates, dim=-1)
    return torch.einsum("bd,bcd->bc", q, candidates)


def margin_mse(s: Tensor, t: Tensor) -> Tensor:
    """MarginMSE: ((s(q_i, p_i) - s(q_i, n_ik)) - (t(q_i, p_i) - t(q_i, n_ik)))^2, mean over all negatives n_ik.

    s and t, the scores of student and teacher, are (b, 1 + m), the positive's first. A NaN in t is a missing negative.
    """
    errors = (s[:, :1] - s[:, 1:]) - (t[:, :1] - t[:, 1:])
    return errors[~t[:, 1:].isnan()].square().mean()


def listwise_kl(s: Tensor, t: Tensor, *, temperature: float, teacher_temperature: float) -> Tensor:
    """KL(P_t || P_s), mean over i, with P_s = softmax(s_i/tau) and P_t = softmax(t_i/T) over all candidates of q_i.

    s and t, the scores of student and teacher, are (b, 1 + m). A NaN in t is a missing candidate.
    """
    absent = t.isnan()
    log_s = (s / temperature).masked_fill(absent, -torch.inf).log_softmax(dim=1)
    log_t = (t / teacher_temperature).masked_fill(absent, -torch.inf).log_softmax(dim=1)
    return (log_t.exp() * (log_t - log_s).masked_fill(absent, 0)).sum(dim=1).mean()


def ranking_kl(
    t: Tensor,  # (b, d), of the target
    t_others: Tensor,  # (m, d)
    s: Tensor,  # (b, d'), of the sources
    s_others: Tensor,  # (m, d')
    *,
    temperature: float,
    absent: Tensor | None = None,  # (b, m), true: no candidate of that row
) -> Tensor:
    """KL(softmax_j cos(s_i, s_j)/tau || softmax_j cos(t_i, t_j)/tau), mean over i: who is near whom, as s has it.

    A row without two candidates says nothing, and is left out.
    """
    learned, taught = cosines(t, t_others), cosines(s.detach(), s_others.detach())
    if absent is None:
        absent = torch.zeros_like(taught, dtype=torch.bool)
    ranked = (~absent).sum(dim=1) > 1
    if not ranked.any():
        return learned.sum() * 0
    scores = taught.to(learned).masked_fill(absent, torch.nan)[ranked]
    return listwise_kl(learned[ranked], scores, temperature=temperature, teacher_temperature=temperature)


def negative_cosine(prediction: Tensor, target: Tensor) -> Tensor:
    """BSL's eq. 1: -cos(z_i, h_i), mean over i; the target h is a constant."""
    return -F.cosine_similarity(prediction, target.detach(), dim=-1).mean()


def local_global_jsd(scores: Tensor, owners: Tensor) -> Tensor:
    """IS-BERT: minus the Jensen-Shannon bound on the mutual information of tokens and sentences.

    scores (T, n) are of each token's features with each sentence's, owners (T,) the sentence of each token: the mean
    of softplus(-s) with its own sentence, plus the mean of softplus(s) with the n - 1 others, less 2 log 2.
    """
    own = F.one_hot(owners, scores.shape[1]).bool()
    others = scores[~own]
    apart = F.softplus(others).mean() if len(others) else scores.sum() * 0
    return F.softplus(-scores[own]).mean() + apart - 2 * math.log(2)


def _without(logits: Tensor, same: Tensor | None, right: Tensor) -> Tensor:
    """Logits with masked candidates at minus infinity, but never the right one."""
    if same is None:
        return logits
    others = torch.ones_like(same).scatter_(1, right[:, None], False)
    return logits.masked_fill(same & others, -torch.inf)
