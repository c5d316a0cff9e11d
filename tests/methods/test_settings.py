"""Settings of a training run: the number of steps, and values that are refused."""

import pytest
from pydantic import ValidationError

from sentloom.methods.settings import Settings
from tests.training.small_runs import settings


def test_how_many_steps():
    assert settings(steps=7, epochs=2).total_steps(100) == 7
    assert settings(steps=None, epochs=2.5).total_steps(10) == 25
    assert settings(steps=None, epochs=1, accumulate=3).total_steps(10) == 3
    assert settings(steps=None, epochs=0.01).total_steps(10) == 1
    with pytest.raises(ValueError, match="neither epochs nor steps"):
        settings(steps=None)


@pytest.mark.parametrize(
    "wrong", [{"batch": 1}, {"chunk": 0}, {"warmup": 1.5}, {"clip": 0}, {"steps": 0}, {"schedule": "sine"}, {"lr": 1}]
)
def test_values_out_of_range_and_unknown_names_are_refused(wrong):
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        Settings(**({"epochs": 1} | wrong))
