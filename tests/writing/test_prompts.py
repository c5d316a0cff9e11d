"""The words around sentences: each kind has its own, and answers differ."""

import pytest
from pydantic import ValidationError

from sentloom.writing.prompts import Wording


def test_each_kind_has_its_own_words():
    wording = Wording(entailment=("follow: ", "!"), contradiction=("deny: ", "?"))
    assert wording.around("entailment") == ("follow: ", "!")
    assert wording.around("contradiction") == ("deny: ", "?")


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
