"""Power: the smallest gain, at the level that the verdict will have, and what is said where there is none."""

import numpy as np
import pytest

from sentloom.errors import NothingToGain
from sentloom.evaluation.significance import corrected_level, smallest_gain
from sentloom.evaluation.task import Score, Task
from sentloom.fitting.gate import earlier_uses, expected_power, power_line, power_of, record_use, refuse_no_room


def score(*hits, clusters=None):
    return Score("mean", np.array(hits, float)[:, None], clusters=None if clusters is None else np.array(clusters))


def test_power_is_that_of_the_base_alone():
    base = score(*[0, 1] * 50)
    power = power_of([base])
    assert (power.clusters, power.effective, power.limit) == (100, 100, None)
    assert power.gain == smallest_gain([base], power=0.8, correlation=power.correlation)
    assert power_of([score(*[0, 1] * 500)]).gain < power.gain
    assert power_line(power) == (
        f"the test rows (100 clusters) have 80% power to detect a gain of {power.gain:.1f} points"
    )


def test_without_labels_no_gain_can_be_shown_whatever_the_rows():
    power = power_of([Score("mean", np.tile([[0.0], [1.0]], (50, 1)))], label_free=True)
    assert power.gain is None
    assert power_line(power).startswith("without labels no gain can be shown, only that a model is worse")


def test_too_few_effective_clusters_show_no_gain():
    """One cluster with 30 of 59 rows counts for much: 59^2 / (30^2 + 29) = 3.7."""
    power = power_of([score(*[0, 1] * 29, 0, clusters=[*[0] * 30, *range(1, 30)])])
    assert (power.gain, power.clusters) == (None, 30)
    assert power.effective == pytest.approx(59**2 / (30**2 + 29))
    assert power_line(power).startswith("no difference can be shown: the test rows form 30 independent clusters, which")


def test_a_base_that_is_always_right_leaves_no_gain_to_show():
    power = power_of([score(*[1] * 40)])
    assert power.gain is None
    assert power_line(power) == "no gain can be shown: the base already has the highest score on every test row"
    with pytest.raises(NothingToGain, match=r"faq.csv: no gain can be shown.*\n.*train anyway: force=True") as caught:
        refuse_no_room(power, "faq.csv")
    assert caught.value.exit_code == 3
    refuse_no_room(power_of([score(*[0, 1] * 50)]), "faq.csv")


def test_a_correlation_that_does_not_vary_says_nothing():
    constant = Score("spearman", np.stack([np.ones(30), np.arange(30.0)], axis=1))
    assert "is unknown" in power_line(power_of([constant]))


class Half:
    """A model whose scores are those of the task."""

    def fingerprint(self):
        return "half"


def test_earlier_uses_widen_the_interval_before_training_and_asking_is_no_use(tmp_path, monkeypatch):
    monkeypatch.setenv("SENTLOOM_CACHE", str(tmp_path))
    items = tuple((f"question {n}", f"answer {n}") for n in range(100))
    task = Task("faq.csv", "mrr@10", {}, lambda lookup: {"mrr@10": score(*[0, 1] * 50)}, "", "hash", items=items)
    for number in range(1, 4):
        power = expected_power(Half(), [task], None)
        assert expected_power(Half(), [task], None) == power
        assert (earlier_uses([task]), power.level) == (number - 1, corrected_level(number))
        assert record_use([task], f"model {number}", "base").number == number
    assert power_of([score(*[0, 1] * 50)]).gain < power.gain
    assert "(99.17% interval, because they were used before)" in power_line(power)
