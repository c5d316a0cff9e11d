"""A row that adapts is trained once per domain; its scores and means are of each domain's own training."""

from dataclasses import replace

import pytest

from sentloom.lab.domains import by_domain, joined
from sentloom.lab.recipe import find_recipe, read_recipe
from sentloom.lab.results import Row

FILES = {"ASKUBUNTU": "a.txt", "CQADUPSTACK": "c.txt", "TWITTER": "t.txt", "PUBMED": "p.txt"}
SETS = ("AskUbuntu", "CQADupStack", "Twitter-URL", "PIT-2015", "BIOSSES")


@pytest.fixture(scope="module")
def table():
    return read_recipe(find_recipe("gense/table-3"), variables=FILES)


def test_each_domain_has_a_plan_that_reads_its_sentences_and_shares_the_stages_before(table):
    plan = table.resolve("GenSE, open-domain -> in-domain -> NLI")
    plans = by_domain(plan)
    assert list(plans) == ["AskUbuntu", "CQADupStack", "Twitter", "BIOSSES"]
    for one, file in zip(plans.values(), FILES.values(), strict=True):
        stages = {stage.name: stage for stage in one.stages}
        assert stages["domain-written"].data == (file,)
        assert stages["written"] == next(stage for stage in plan.stages if stage.name == "written")
        assert one.evaluate == plan.evaluate
        assert stages["in-domain"].settings.batch == 1024  # section 3.1, synthetic data
    assert by_domain(table.resolve("GenSE, open-domain -> NLI")) == {}


def row(name, score, **more):
    after = {part: score + at for at, part in enumerate(SETS)}
    return Row(name, 1, "b", {}, "b", {}, after, dict.fromkeys(SETS), {}, 10.0, True, False, **more)


def test_the_joined_row_has_the_scores_of_each_domains_own_training(table):
    plan = table.resolve("GenSE, open-domain -> in-domain -> NLI")
    rows = {name: row(name, score) for name, score in zip(by_domain(plan), (10, 20, 30, 40), strict=True)}
    whole = joined(plan, rows)
    own = {"AskUbuntu": 10, "CQADupStack": 21, "Twitter-URL": 32, "PIT-2015": 33, "BIOSSES": 44}
    assert {name: whole.after[name] for name in SETS} == own
    assert whole.after["mean"] == sum(own.values()) / 5
    assert whole.after["Twitter mean"] == 32.5
    assert (whole.name, whole.published["mean"], whole.seconds) == (plan.name, 61.5, 40.0)


def test_sets_that_are_not_the_published_ones_are_left_out_of_the_joined_mean(table):
    plan = table.resolve("GenSE, open-domain -> in-domain -> NLI")
    rows = {name: row(name, 10, not_comparable=("PIT-2015", "mean")) for name in by_domain(plan)}
    whole = joined(plan, rows)
    assert whole.after["mean"] == (10 + 11 + 12 + 14) / 4
    assert whole.after["Twitter mean"] == 12
    assert whole.not_comparable == ["PIT-2015", "mean"]
    assert joined(plan, {name: replace(one, transductive=True) for name, one in rows.items()}).transductive
