"""The papers' losses as pure functions of tensors, with the papers' symbols.

Shapes: b rows of a batch, d width of a vector, m more candidates, K layers. `same` marks candidates that share a text
with the row and so are not negatives. The positive itself is never masked.
"""

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


def contrastive(
    anchor: Tensor,  # (b, d)
    positive: Tensor,  # (b, d)
    negatives: Tensor | None = None,  # (b, m, d), the hard negatives of each anchor; every anchor sees all of them
    *,
    temperature: float | Tensor,
    margin: float = 0.0,
    own_weight: float = 0.0,
    same: Tensor | None = None,  # (b, b)
    barred: Tensor | None = None,  # (b, b * m), hard negatives that are missing or not negatives
    both_ways: bool = False,
) -> Tensor:
    """InfoNCE with hard negatives: Sentence-T5's eq. 2, SimCSE's eq. 5, GenSE's eq. 2.

    `margin` is subtracted from the positives' cosines; `own_weight` is added to the logits of an anchor's own hard
    negatives; `both_ways` adds the loss from positives to anchors, which has no hard negatives (a sum, as in t5x).
    """
    right = torch.arange(len(anchor), device=anchor.device)
    own = torch.eye(len(anchor), dtype=anchor.dtype, device=anchor.device)
    scores = (cosines(anchor, positive) - margin * own) / temperature
    logits = _without(scores, same, right)
    if negatives is not None:
        hard = cosines(anchor, negatives.flatten(0, 1)) / temperature
        hard = hard + own_weight * own.repeat_interleave(negatives.shape[1], dim=1)
        logits = torch.cat([logits, hard if barred is None else hard.masked_fill(barred, -torch.inf)], dim=1)
    loss = F.cross_entropy(logits, right)
    if both_ways:
        loss = loss + F.cross_entropy(_without(scores.T, None if same is None else same.T, right), right)
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


def negative_cosine(prediction: Tensor, target: Tensor) -> Tensor:
    """BSL's eq. 1: -cos(z_i, h_i), mean over i; the target h is a constant."""
    return -F.cosine_similarity(prediction, target.detach(), dim=-1).mean()


def _without(logits: Tensor, same: Tensor | None, right: Tensor) -> Tensor:
    """Logits with masked candidates at minus infinity, but never the right one."""
    if same is None:
        return logits
    others = torch.ones_like(same).scatter_(1, right[:, None], False)
    return logits.masked_fill(same & others, -torch.inf)
