"""The instances of a row: what the model reads and what it writes."""

from sentloom.data.batches import Batches
from sentloom.lab.synthesizer import instances
from tests.writing.oracles import read_to_judge, read_to_write
from tests.writing.small_synthesizers import labelled, triplets


def test_four_instances_of_a_triplet(model):
    batch = Batches(triplets(), 2, seed=3).batch(0)
    made = instances(model, batch)
    assert len(made) == 8
    anchor, positive, negative = batch.texts["anchor"][0], batch.texts["positive"][0], batch.texts["negatives"][0][0]
    assert [(instance.source, instance.target, instance.judged) for instance in made[:4]] == [
        (read_to_write(model, anchor, "entailment"), model.target_ids(positive), False),
        (read_to_judge(model, anchor, positive), model.target_ids("true"), True),
        (read_to_write(model, anchor, "contradiction"), model.target_ids(negative), False),
        (read_to_judge(model, anchor, negative), model.target_ids("false"), True),
    ]


def test_labelled_pairs_teach_the_same_and_neutral_ones_nothing(model):
    both = [
        {
            (tuple(instance.source), tuple(instance.target))
            for instance in instances(model, Batches(data, size, seed=0).batch(0))
        }
        for data, size in ((triplets(20), 20), (labelled(20), 60))
    ]
    assert both[0] == both[1]
