"""Options are read from text or mappings, validated, and the first invalid one is reported in a sentence."""

import pytest

from sentloom.errors import InputError, checked
from sentloom.lab.making import Running, chosen_filters, chosen_kinds, parsed
from sentloom.writing.filters import PRESETS, Filtering
from sentloom.writing.sampling import Sampling
from sentloom.writing.writer import Wording


def test_text_and_mappings_mean_the_same():
    made = Sampling(top_p=0.5, greedy=True, seed=3)
    assert checked(Sampling, "sampling", parsed("sampling", "top_p=0.5, greedy=true,seed=3")) == made
    assert checked(Sampling, "sampling", {"top_p": 0.5, "greedy": True, "seed": 3}) == made
    assert checked(Sampling, "sampling", parsed("sampling", None)) == Sampling()
    assert checked(Wording, "wording", {"true": "yes", "false": "no"}) == Wording(true="yes", false="no")


@pytest.mark.parametrize(
    ("written", "filters"),
    [
        (None, Filtering()),
        ("paper", PRESETS["paper"]),
        ("words=3", Filtering(words=3)),
        ({"words": 3}, Filtering(words=3)),
        ("official-code, words=3", PRESETS["official-code"].model_copy(update={"words": 3})),
    ],
)
def test_filters_are_a_preset_with_changes(written, filters):
    assert chosen_filters(written) == filters


def test_kinds_are_named_once_in_a_fixed_order():
    assert chosen_kinds("query") == ("query",)
    assert chosen_kinds("contradiction, entailment,contradiction") == ("entailment", "contradiction")
    assert chosen_kinds(["paraphrase"]) == ("paraphrase",)
    for wrong in ("", "queries", []):
        with pytest.raises(InputError, match="Expected one of entailment, contradiction, query, paraphrase"):
            chosen_kinds(wrong)


def test_a_call_says_how_much_runs_where():
    running = checked(Running, "execution", parsed("execution", "rows=5,device=cpu,backend=ctranslate2"))
    assert (running.rows, running.device, running.backend, running.block) == (5, "cpu", "ctranslate2", 256)


@pytest.mark.parametrize(
    ("model", "written", "message"),
    [
        (Sampling, "top_p", "here: found 'top_p'. Expected NAME=VALUE,NAME=VALUE."),
        (Sampling, "topp=1", "here: unknown name 'topp'. Expected one of top_p, top_k,"),
        (Sampling, "top_p=much", "here: top_p is 'much'. Expected a number."),
        (Sampling, "top_k=-1", "here: top_k is '-1'. Expected a number greater than or equal to 0."),
        (Wording, {"judge": ("a", 1, "b")}, "here: judge.1 is 1. Expected text."),
        (Wording, {"true": "a", "false": "a"}, "here: true and false are the same word."),
    ],
)
def test_an_error_is_a_sentence_about_the_first_wrong_value(model, written, message):
    with pytest.raises(InputError) as refused:
        checked(model, "here", parsed("here", written))
    assert str(refused.value).startswith(message)
