"""The words around sentences: each kind has its own, and answers differ."""

import pytest
from pydantic import ValidationError

from sentloom.data.shapes import Shape
from sentloom.errors import InputError
from sentloom.writing.writer import KINDS, Wording, WritingPrompt, prompts_for, shown_judgements
from tests.small_data import build_dataset


def test_each_kind_has_its_own_words():
    wording = Wording(entailment=("follow: ", "!"), contradiction=("deny: ", "?"))
    assert wording.prompt("entailment").around == ("follow: ", "!")
    assert wording.prompt("contradiction").around == ("deny: ", "?")
    assert wording.prompt("contradiction").messages("It rains.") == [{"role": "user", "content": "deny: It rains.?"}]


def test_a_prompt_with_shots_by_hand():
    prompt = WritingPrompt(label="Question", instruction="Ask.", shots=(("It rains.", "What is the weather?"),))
    assert prompt.around == (
        "Ask.\n\nText: It rains.\nQuestion: What is the weather?\n\nText: ",
        "\nQuestion:",
    )
    assert [(message["role"], message["content"]) for message in prompt.messages("Snow falls.")] == [
        ("system", "Ask. Answer with nothing else."),
        ("user", "It rains."),
        ("assistant", "What is the weather?"),
        ("user", "Snow falls."),
    ]


def test_every_kind_has_prompts_in_the_language_of_the_text():
    for language, said in (("German", "in German"), (None, "in the language of the text")):
        of_kind = prompts_for(KINDS, language)
        assert list(of_kind) == list(KINDS)
        assert all(
            said in prompt.instruction and len(prompt.shots) == 3 for prompts in of_kind.values() for prompt in prompts
        )
    assert [prompt.style for prompt in of_kind["query"]] == ["question", "keywords", "title", "statement"]


def test_a_trained_model_reads_what_it_learned():
    of_kind = prompts_for(("query", "entailment"), "English", learned=Wording())
    assert of_kind["entailment"] == (Wording().prompt("entailment"),)
    assert len(of_kind["query"]) == 4


def test_own_shots_replace_ours_and_the_styles():
    pairs = build_dataset(Shape.PAIRS, [("vpn down", "To restart\nthe VPN ..."), *[("q", "d")] * 9], "mine.tsv")
    (query,) = prompts_for(("query",), "English", pairs)["query"]
    assert query.shots[0] == ("To restart the VPN ...", "vpn down")
    assert len(query.shots) == 5
    (paraphrase,) = prompts_for(("paraphrase",), "English", pairs)["paraphrase"]
    assert paraphrase.shots[0] == ("vpn down", "To restart the VPN ...")
    triplets = build_dataset(Shape.TRIPLETS, [("a", "b", ["c"])], "mine.tsv")
    of_kind = prompts_for(("entailment", "contradiction"), "English", triplets, learned=Wording())
    assert [of_kind[kind][0].shots for kind in ("entailment", "contradiction")] == [(("a", "b"),), (("a", "c"),)]
    with pytest.raises(
        InputError, match=r"mine.tsv: its shape is pairs. Expected triplets, as examples of kind contra"
    ):
        prompts_for(("contradiction",), "English", pairs)


def test_judgements_are_shown_to_models_that_did_not_learn_to_judge():
    start, middle, end = shown_judgements().judge
    assert start.startswith(
        'if "A man is asleep on the sofa.", does this mean that "A man is resting."? true or false: true\n'
    )
    assert start.endswith('true\nif "')
    assert (middle, end) == ('", does this mean that "', '"? true or false:')


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"true": "yes", "false": "yes"}, "true and false are the same word"),
        ({"entailment": ("a", "b"), "contradiction": ("a", "b")}, "entailment and contradiction are the same"),
        ({"judge": ("a", "b")}, "judge"),
        ({"neutral": ("a", "b")}, "Extra inputs"),
    ],
)
def test_invalid_wordings_are_refused(values, problem):
    with pytest.raises(ValidationError, match=problem):
        Wording(**values)
