"""A small T5 of random weights, and NLI rows with a rule that it can learn."""

from pathlib import Path

from sentloom.data.dataset import Dataset
from sentloom.data.shapes import Shape
from sentloom.lab.init_model import Size, build_model
from sentloom.writing.writer import Wording
from tests.small_data import build_dataset

WHO = ["a man", "a woman", "a child", "two dogs", "the teacher", "my friend", "an old cat", "some people"]
DOES = ["sleeps", "runs", "eats", "sings", "waits", "reads"]
WHERE = ["in the park", "at home", "on the train", "near the sea"]
TRIPLETS = [
    (f"{who} {does} {where}", f"{who} {does}", [f"nobody {does} {where}"])
    for who in WHO
    for does in DOES
    for where in WHERE
]
SHORT = Wording(entailment=("follow:", ""), contradiction=("deny:", ""), judge=("judge:", "so", ""))


def triplets(rows: int | None = None) -> Dataset:
    return build_dataset(Shape.TRIPLETS, TRIPLETS[:rows], "triplets.tsv")


def labelled(rows: int | None = None) -> Dataset:
    labelled_rows = [
        (anchor, hypothesis, label)
        for anchor, positive, (negative,) in TRIPLETS[:rows]
        for hypothesis, label in ((positive, "entailment"), (negative, "contradiction"), (anchor, "neutral"))
    ]
    return build_dataset(Shape.NLI, labelled_rows, "nli.tsv")


def build_small_t5(folder: Path, width: int = 32) -> Path:
    texts = [text for anchor, positive, (negative,) in TRIPLETS for text in (anchor, positive, negative)]
    prompts = [part for words in (Wording(), SHORT) for part in (*words.entailment, *words.contradiction, *words.judge)]
    build_model(
        folder, "t5", [*texts, *prompts * 3, *["true", "false"] * 9], size=Size(vocabulary=300, layers=2, width=width)
    )
    return folder
