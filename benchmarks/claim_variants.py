"""The papers' claims at small scale: for each claim, variants that differ in what it is about.

A claim's variants share data, steps, batch and learning rate unless these are the claim. The first trained variant is
the one that the paper prefers; the others are compared with it. Variants with "as in the paper" try a claim that failed
once more, with what the paper did differently.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sentloom.encoder.tokens import Prompt
from sentloom.engine.building import stage
from sentloom.engine.stages import Stage

SAMPLES = {  # by name: a file of the data folder, and n: every n-th row is taken
    "texts": ("text/sentences.en.tsv.gz", 20),
    "qa": ("qa/qa_pairs.en.tsv.gz", 6),
    "german": ("parallel/tatoeba.en-de.tsv.gz", 12),
    "nli": ("nli/triplets.en.tsv", 1),
    "entailments": ("pairs/nli_entailment.en.tsv.gz", 1),
    **{f"stsb-{part}": (f"sts/STSB.{part}.tsv", 1) for part in ("train", "dev", "test")},
}
DOWN = 6.0  # of the logarithm of a temperature, at most, under a cosine schedule half of it: 1 to 0.05
PROMPT = Prompt(suffix=" Question: what can we draw from the above sentence?")


@dataclass(frozen=True)
class Variant:
    """Stages on the base; without any, the base with a pooling."""

    stages: tuple[Stage, ...] = ()
    pooling: str | None = None
    prompt: Prompt | None = None


@dataclass(frozen=True)
class Setting:
    """What all variants of a base share."""

    data: str  # the folder of the samples
    steps: int
    rate: float
    batch: int = 32
    max_length: int = 48
    optimizer: dict[str, Any] | None = None
    synthetic: str = ""  # a file of triplets that a writer wrote,
    fewer: str = ""  # and one with 40% of them

    def learn(self, method: str, name: str = "learn", **options: Any) -> Stage:
        """A training stage with the common settings; `options` override them."""
        common = {"steps": self.steps, "batch": self.batch, "learning_rate": self.rate, "max_length": self.max_length}
        return stage(method, name=name, **{**common, **(self.optimizer or {}), **options})

    def rows(self, *names: str, share: float = 1.0) -> dict[str, Any]:
        """Samples, without sentences that are scored on."""
        return {"data": [f"{self.data}/{name}.tsv" for name in names], "data_share": share, "drop_leaks": True}


def self_guided(given: Setting) -> dict[str, Variant]:
    """OPT3 > OPT2 > OPT1 > SG; temperature, lambda, head."""
    rows = given.rows("texts")
    own = given.rows("stsb-train", "stsb-dev", "stsb-test") | {
        "drop_leaks": False,
        "transductive": True,
        "repeats": True,
    }

    def learn(**options: Any) -> Variant:
        by = {"preset": "paper", "pooling": "first", "batch": 16, "head_width": 1024, **rows, **options}
        return Variant((given.learn("self-guided", **by),))

    return {
        "OPT3": learn(objective="opt3"),
        "OPT2": learn(objective="opt2"),
        "OPT1": learn(objective="opt1"),
        "SG": learn(objective="sg"),
        "OPT3, STS-B's sentences as in the paper": learn(objective="opt3", **own),
        "SG, STS-B's sentences as in the paper": learn(objective="sg", **own),
        "OPT3, temperature 0.1": learn(temperature=0.1),
        "OPT3, temperature 0.001": learn(temperature=0.001),
        "OPT3, lambda 0": learn(regularizer=0.0),
        "OPT3, lambda 1": learn(regularizer=1.0),
        "OPT3, no head": learn(head_width=None),
        "untouched, [CLS]": Variant(pooling="first"),
        "untouched, mean": Variant(pooling="mean"),
    }


def bootstrapped(given: Setting) -> dict[str, Variant]:
    """Momentum, kinds of views, batch size against NT-Xent."""
    raw = given.rows("texts", share=0.2)  # 2,600 sentences, which the embedded translator translates in 3 minutes
    back = stage("views", name="back", kind="back-translation", **raw)
    entailed = given.rows("entailments")

    def learn(method: str = "bootstrapped", views: Any = (back,), data: Any = "stage:back", **options: Any) -> Variant:
        by = {"data": data, "pooling": "mean", "predictor_width": 4, **options}
        return Variant((*views, given.learn(method, **by)))

    def contrastive(batch: int) -> Variant:
        by = {"preset": "paper", "data": "stage:back", "pooling": "mean", "head_width": None, "regularizer": 0.0}
        return Variant((back, given.learn("contrastive-bt", batch=batch, temperature=0.05, **by)))

    both = ["stage:back", *entailed["data"]]
    return {
        "momentum 0.999, back-translation, batch 32": learn(),
        **{f"momentum {value}": learn(momentum=value) for value in (0.5, 0.9, 0.99, 1.0)},
        "views: dropout alone": learn(views=(), **raw),
        "views: entailment": learn(views=(), **entailed),
        "views: back-translation and entailment": learn(data=both, drop_leaks=True),
        **{f"batch {size}": learn(batch=size) for size in (16, 64)},
        **{f"NT-Xent, batch {size}": contrastive(size) for size in (16, 32, 64)},
        "untouched, mean": Variant(pooling="mean"),
    }


def stages(given: Setting) -> dict[str, Variant]:
    """Questions and answers before NLI, and poolings: raw and tuned."""
    nli, qa = given.rows("nli"), given.rows("qa")

    def learn(pooling: str, *before: Stage) -> Variant:
        return Variant((*before, given.learn("contrastive", "nli", pooling=pooling, **nli)))

    first_stage = given.learn("contrastive", "qa", pooling="mean", **qa)
    longer = given.learn("contrastive", "qa", pooling="mean", steps=5 * given.steps, **qa)
    return {
        "mean, QA then NLI": learn("mean", first_stage),
        "mean, longer on QA as in the paper, then NLI": learn("mean", longer),
        "mean, NLI": learn("mean"),
        "mean, QA": Variant((first_stage,)),
        "first, NLI": learn("first"),
        "untouched, mean": Variant(pooling="mean"),
        "untouched, first": Variant(pooling="first"),
    }


def poolings(given: Setting) -> dict[str, Variant]:
    """The three poolings of a T5, raw and tuned on NLI."""
    names = {"mean": "encoder, mean", "first": "encoder, first", "decoder-first": "decoder, first"}
    learned = {
        f"{name}, NLI": Variant((given.learn("contrastive", pooling=pooling, **given.rows("nli")),))
        for pooling, name in names.items()
    }
    return learned | {f"untouched, {name}": Variant(pooling=pooling) for pooling, name in names.items()}


def cross_lingual(given: Setting) -> dict[str, Variant]:
    """Frozen > dual > one encoder; temperature, queue. English is the source, German is learned and scored."""
    rows = given.rows("german")

    def learn(**options: Any) -> Variant:
        by = {"source": "embedded", "pooling": "mean", "queue": 0, "head": "linear", **options}
        return Variant((given.learn("cross-lingual", **rows, **by),))

    fixed = {"learn_temperature": False}
    return {
        "frozen source, learned temperature": learn(),
        "trained source": learn(source_encoder="trained"),
        "one encoder for both": learn(source=None, source_encoder="shared", head="none"),
        "learned temperature that comes down as in the paper": learn(
            temperature_speed=DOWN / (given.steps * given.rate)
        ),
        "frozen source, no head": learn(head="none"),
        "temperature 0.05": learn(temperature=0.05, **fixed),
        "temperature 0.01": learn(temperature=0.01, **fixed),
        "queue 1,024": learn(queue=1024),
        "untouched, mean": Variant(pooling="mean"),
    }


def gense(given: Setting) -> dict[str, Variant]:
    """Synthetic triplets before NLI: their amount, negatives, prompt, half of NLI."""

    def learn(data: str = given.synthetic, nli: float = 1.0, prompt: Prompt | None = None, **options: Any) -> Variant:
        last = given.learn("contrastive", "nli", pooling="mean", **given.rows("nli", share=nli))
        if not data:
            return Variant((last,))
        by = {"data": data, "drop_leaks": True, "steps": max(1, given.steps // 2)}
        synthetic = given.learn("contrastive", "synthetic", pooling="mean", **by, **options)
        return Variant((synthetic, last), prompt=prompt)

    return {
        "all synthetic triplets, then NLI": learn(),
        "40% of them": learn(given.fewer),
        "NLI alone": learn(""),
        "without their negatives": learn(negatives=0),
        "with the prompt": learn(prompt=PROMPT),
        "half of NLI": learn(nli=0.5),
        "half of NLI alone": learn("", nli=0.5),
    }


@dataclass(frozen=True)
class Claim:
    """A claim, what it is scored on, and the bases that can show it."""

    variants: Callable[[Setting], dict[str, Variant]]
    scored_on: str = "sts-b"
    bases: tuple[str, ...] = ("bert", "embedded")


CLAIMS = {
    "self-guided": Claim(self_guided),
    "sentence-t5": Claim(stages),
    "sentence-t5, poolings": Claim(poolings, bases=("t5",)),
    "cross-lingual": Claim(cross_lingual, scored_on="STS-B de"),
    "bsl": Claim(bootstrapped),
    "gense": Claim(gense),
}
