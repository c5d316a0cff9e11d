"""What a good engineer writes without sentloom: one short sentence-transformers script per kind of data.

    python -m benchmarks.plain_scripts KIND TABLE.csv MODEL --base FOLDER [--epochs 1] [--seed 1]

The losses, batch samplers and settings are those that the documentation of sentence-transformers recommends for each
kind: a learning rate of 2e-5, 10% warm-up, batches of 64 (16 for scored pairs, as in its STS-B example). Of the losses
that it lists for labelled texts, this is the one that scored best in a trial on the set `intents`. `against_script`
runs this file as a process of its own, so that imports count as they do for `sentloom fit`.
"""

import argparse

import pandas as pd
from datasets import Dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.base.sampler import BatchSamplers
from sentence_transformers.sentence_transformer import losses


def train(model, table, loss, args, **more):
    """Train with the settings that all kinds share, and save."""
    settings = SentenceTransformerTrainingArguments(
        output_dir=f"{args.model}.checkpoints",
        num_train_epochs=args.epochs,
        seed=args.seed,
        **{"per_device_train_batch_size": 64, "learning_rate": 2e-5, "warmup_steps": 0.1} | more,
        save_strategy="no",
        report_to="none",
    )
    SentenceTransformerTrainer(model=model, args=settings, train_dataset=table, loss=loss).train()
    model.save(args.model)


def pairs(model, table, args):
    """Questions and answers, translations, or triplets: the second texts of the other rows of a batch are negatives."""
    rows = Dataset.from_pandas(table)
    train(model, rows, losses.MultipleNegativesRankingLoss(model), args, batch_sampler=BatchSamplers.NO_DUPLICATES)


def labels(model, table, args):
    """Labelled texts: the hardest triplets of a batch that has several texts of each label."""
    rows = Dataset.from_pandas(table.assign(label=pd.factorize(table["label"])[0]))
    train(model, rows, losses.BatchHardSoftMarginTripletLoss(model), args, batch_sampler=BatchSamplers.GROUP_BY_LABEL)


def scores(model, table, args):
    """Scored pairs: cosines in the order of the scores."""
    rows = Dataset.from_pandas(table.assign(score=table["score"].astype(float)))
    train(model, rows, losses.CoSENTLoss(model), args, per_device_train_batch_size=16)


KINDS = {"pairs": pairs, "translations": pairs, "triplets": pairs, "labels": labels, "scores": scores}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("table")
    parser.add_argument("model")
    parser.add_argument("--base", required=True)
    parser.add_argument("--epochs", type=float, default=1)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    table = pd.read_csv(args.table, dtype=str, keep_default_na=False)
    KINDS[args.kind](SentenceTransformer(args.base, device="cpu"), table, args)


if __name__ == "__main__":
    main()
