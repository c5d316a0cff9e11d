"""Published scores are complete and belong to known sets, and every fault that can be recomputed is listed."""

import re
import statistics
from itertools import combinations

import pytest

from sentloom.lab.published import _all_rows, _Paper, published

SUITES = {
    "sts": {"STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R"},
    "transfer": {"MR", "CR", "SUBJ", "MPQA", "SST-2", "TREC", "MRPC"},
    "sentglue": {"CoLA", "SST-2", "MRPC", "STS-B", "QQP", "MNLI-m", "MNLI-mm", "QNLI", "RTE"},
    "glue": {"QNLI", "SST-2", "CoLA", "MRPC", "RTE"},
    "domain": {"AskUbuntu", "CQADupStack", "Twitter-URL", "PIT-2015", "BIOSSES"},
    "multilingual": {
        *(f"STS17 {track}" for track in "en-en es-es ar-ar ar-en en-de tr-en es-en fr-en".split()),
        *("STS14 es", "CNSD STS-B"),
    },
    "afs": {"AFS"},
}
METRICS = {
    "spearman",
    "pearson",
    "spearman-mean",
    "pearson-mean",
    "accuracy",
    "map",
    "map@100",
    "average-precision",
    "unknown",
}
# Averages that the papers state for their own models in the text: (source, label) -> average.
HEADLINES = {
    ("GenSE, Table 2", "GenSE"): 84.78,
    ("GenSE, Table 2", "GenSE+"): 85.19,
    ("Cross-lingual, Table 2", "Ours-BERT-base (SMD) (NLI)"): 85.15,
    ("Cross-lingual, Table 2", "Ours-RoBERTa-large (SMD) (NLI)"): 85.58,
    ("Sentence-T5, Table 5", "ST5-EncDec first (11B) (NLI)"): 84.94,
    ("BSL, Table 1", "BSL-BERT (unsupervised)"): 72.03,
    ("BSL, Table 1", "BSL-SRoBERTa (supervised)"): 78.91,
    ("Self-guided, Table 1", "BERT-base + Contrastive (SG-OPT) (CLS)"): 74.62,
    ("Self-guided, Table 7", "BERT-base + Contrastive (BT + SG-OPT) (CLS)"): 75.10,
}


def find(suite, source, label):
    (row,) = [row for row in published(suite) if (row.source, row.label) == (source, label)]
    return row


@pytest.mark.parametrize("suite", SUITES)
def test_every_suite_has_rows_of_its_own_sets_and_all_have_a_metric(suite):
    rows = published(suite)
    assert rows
    for row in rows:
        assert set(row.scores) <= SUITES[suite], row.label
        assert set(row.metrics) >= set(row.scores)
        assert row.scores or row.average is not None
        assert all(-100 <= score <= 100 for score in row.scores.values())
        assert set(row.metrics.values()) <= METRICS


def test_all_rows_belong_to_a_suite_and_are_unique():
    rows = _all_rows()
    assert {row.suite for row in rows} == set(SUITES)
    names = [(row.source, row.suite, row.label, *row.metrics.values()) for row in rows]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    "row",
    [row for row in _all_rows() if row.scores and row.average is not None],
    ids=lambda row: f"{row.source}: {row.label}",
)
def test_a_published_average_is_that_of_its_columns_or_has_a_fault(row):
    mean = statistics.mean(row.scores.values())
    near = 0.051 if row.suite == "domain" else 0.011  # domain scores are printed with one digit
    said = [re.search(r"its columns give ([\d.]+)", fault) for fault in row.faults]
    said = [float(match[1]) for match in said if match]
    if abs(mean - row.average) <= near:
        assert said == []
    else:
        assert said == [pytest.approx(mean, abs=0.0051)]


def test_a_quoted_row_is_the_same_in_all_papers_or_has_a_fault():
    compared = 0
    for row, other in combinations(_all_rows(), 2):
        if row.paper == other.paper or row.suite not in ("sts", "transfer") or not (row.quoted or other.quoted):
            continue
        shared = row.scores.keys() & other.scores.keys()
        differing = {name for name in shared if row.scores[name] != other.scores[name]}
        if len(shared) == 7 and len(differing) <= 2:
            compared += 1
            for name in differing:
                assert any(fault.startswith(f"{name} is") for fault in row.faults + other.faults), (row, other)
    assert compared > 30


@pytest.mark.parametrize(("source", "label"), HEADLINES)
def test_the_papers_own_models_have_the_averages_of_their_texts(source, label):
    assert find("sts", source, label).average == HEADLINES[source, label]


def test_rows_state_their_aggregation():
    flow = [row for row in published("sts") if "low" in row.model and row.quoted == "Li et al. (2020)"]
    assert len(flow) == 4
    assert all(row.aggregation == "wmean" and "not comparable" in row.faults[0] for row in flow)
    assert find("sts", "GenSE, Table 2", "GenSE").aggregation == "all"
    assert find("sts", "Self-guided, Table 1", "BERT-base + No tuning (Mean)").aggregation == "unknown"
    assert {row.aggregation for row in published("transfer")} == {None}


def test_known_faults_are_on_their_rows():
    copied = [row for row in published("sts") if row.scores.get("STS13") == row.scores.get("STS14") == 57.98]
    assert len(copied) == 2
    assert all("57.98" in row.faults[0] for row in copied)
    assert all("hidden layer" in row.faults[0] for row in published("transfer") if row.paper == "Self-guided")
    assert all("five columns" in row.faults[0] for row in published("domain"))


def test_columns_of_self_guided_are_in_its_own_order():
    row = find("sts", "Self-guided, Table 1", "BERT-base + No tuning (Mean)")
    assert (row.scores["STS-B"], row.scores["STS12"]) == (47.29, 30.87)


def test_a_file_with_a_missing_score_or_an_unknown_key_is_refused():
    table = {"table": "Table 1", "suite": "sts", "sets": ["STS12", "STS13"], "metric": "spearman"}
    rows = [{"model": "one", "scores": [1.0]}]
    with pytest.raises(ValueError, match="the number of scores"):
        _Paper.model_validate({"paper": "P", "citation": "C", "tables": [{**table, "rows": rows}]})
    with pytest.raises(ValueError, match="score"):
        _Paper.model_validate(
            {"paper": "P", "citation": "C", "tables": [{**table, "rows": [{"model": "one", "score": [1.0, 2.0]}]}]}
        )
