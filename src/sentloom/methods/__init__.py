"""How an encoder learns: one paper, one file, readable beside it."""

from sentloom.methods.bootstrapped import Bootstrapped
from sentloom.methods.contrastive import Contrastive
from sentloom.methods.contrastive_bt import ContrastiveBt
from sentloom.methods.cross_lingual import CrossLingual
from sentloom.methods.method import Embeddings, Learner, Method, Options, TokenMethod
from sentloom.methods.mlm import Mlm
from sentloom.methods.mse_distillation import MseDistillation
from sentloom.methods.nli_classification import NliClassification
from sentloom.methods.self_guided import SelfGuided
from sentloom.methods.simcse import Simcse

METHODS: dict[str, type[Method]] = {
    method.NAME: method
    for method in (
        *(Simcse, SelfGuided, Bootstrapped, Mlm, ContrastiveBt, Contrastive, NliClassification),
        *(CrossLingual, MseDistillation),
    )
}

__all__ = ["METHODS", "Embeddings", "Learner", "Method", "Options", "TokenMethod"]
