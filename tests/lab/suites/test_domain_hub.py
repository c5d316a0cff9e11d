"""Tables of the hub: columns under any of their names, and texts by id."""

import pytest

from sentloom.errors import InputError, MissingPart
from sentloom.evaluation.set_source import SetSource
from sentloom.lab.suites.domain import hub_columns, hub_texts, load


def test_other_columns_on_the_hub_are_refused(hub):
    hub("mteb/twittersemeval2015-pairclassification", {("default", "test"): {"text": ["a"], "label": [1]}})
    with pytest.raises(InputError, match=r"the columns are text, label. Expected sent1\|sentence1"):
        load("PIT-2015", SetSource())


def test_columns_are_found_under_any_name_in_the_order_asked_for(hub):
    hub("owner/name", {("default", "test"): {"label": [1, 0], "sentence1": ["a", "b"]}})
    columns = hub_columns("a part", ["owner/name/default:test"], ["sent1", "sentence1"], ["labels", "label"])
    assert columns == [["a", "b"], [1, 0]]


def test_titles_come_before_texts_and_ids_are_strings(hub):
    hub("owner/name", {("corpus", "test"): {"id": [1, 2], "title": ["a title", ""], "text": ["one", "two"]}})
    assert hub_texts("a part", ["owner/name/corpus:test"]) == {"1": "a title", "2": "two"}


def test_a_table_that_is_under_no_name_is_missing(hub):
    hub("owner/name", {("corpus", "test"): {"id": [1], "text": ["one"]}})
    with pytest.raises(MissingPart, match=r"a part.*the set owner/name/corpus:train on the hub"):
        hub_texts("a part", ["owner/name/corpus:train", "owner/name/queries:test"])
