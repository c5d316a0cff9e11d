"""Options are validated, and the first invalid one is reported."""

import pytest

from sentloom.errors import InputError
from sentloom.writing.options import checked
from sentloom.writing.prompts import Wording


def test_valid_values_become_the_model():
    assert checked(Wording, {"true": "yes", "false": "no"}) == Wording(true="yes", false="no")


@pytest.mark.parametrize(
    ("values", "where"),
    [({"true": 3}, "true"), ({"judge": ("a", 1, "b")}, "judge, 1"), ({"true": "a", "false": "a"}, "synthesize")],
)
def test_the_error_names_the_option(values, where):
    with pytest.raises(InputError) as refused:
        checked(Wording, values)
    assert refused.value.where == where
    assert str(refused.value).startswith(f"{where}: ")
