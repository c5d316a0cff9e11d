"""Lookup of suites, sets and files by name."""

import pytest

from sentloom.errors import InputError, MissingPart
from sentloom.evaluation.set_source import SetSource
from sentloom.evaluation.suites import SUITES, find_task, load_suites

HEAD = "score\tsentence1\tsentence2\tsubset\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "sts").mkdir()
    for name in ("STS14", "STSB.test", "STSB.dev"):
        (tmp_path / f"sts/{name}.tsv").write_text(HEAD + "1\ta\tb\tx\n2\tc\td\tx\n")
    return tmp_path


def test_the_suites_of_the_five_papers_exist():
    assert list(SUITES) == ["sts", "transfer", "sentglue", "multilingual", "domain", "afs", "glue"]
    for suite in SUITES.values():
        for average in suite.averages:
            members = {name for part in average.parts for name in ((part,) if isinstance(part, str) else part)}
            assert members <= set(suite.sets)


def test_missing_sets_are_named_and_the_others_loaded(folder):
    (suite,) = load_suites(["sts"], SetSource(folder, checked=False))
    assert [task.name for task in suite.tasks] == ["STS14", "STS-B"]
    assert list(suite.missing) == ["STS12", "STS13", "STS15", "STS16", "SICK-R"]
    assert "sts/STS12.tsv" in suite.missing["STS12"]


def test_it_is_an_error_if_all_sets_are_missing(folder):
    with pytest.raises(MissingPart, match="senteval"):
        load_suites(["transfer"], SetSource(folder, checked=False))


@pytest.mark.parametrize("name", ["STS-B/dev", "sts-b/DEV", "sts/STS-B/dev"])
def test_a_set_is_found_by_its_short_and_long_name_in_any_case(folder, name):
    assert find_task(name, SetSource(folder, checked=False)).name == "STS-B/dev"


def test_the_test_part_is_the_default(folder):
    assert find_task("sts-b/test", SetSource(folder, checked=False)).source.endswith("STSB.test.tsv")


def test_the_error_about_an_unknown_name_suggests_the_closest_one(folder):
    with pytest.raises(InputError, match="Did you mean 'STS13'"):
        find_task("STS-13", SetSource(folder))
    with pytest.raises(InputError, match="a suite \\(sts, transfer"):
        load_suites(["no-such-thing.tsv"], SetSource(folder))


def test_texts_alone_are_not_taken_for_names_of_sets(folder):
    with pytest.raises(InputError, match="'Colleague 0 wants a car' is a text, and texts alone cannot be scored"):
        load_suites(["Colleague 0 wants a car", "Colleague 1 wants v2.0 of it."], SetSource(folder))
    with pytest.raises(InputError, match=r"no set or file 'my file\.csv'"):
        load_suites(["my file.csv"], SetSource(folder))


def test_a_file_is_scored_by_its_shape_or_by_the_given_kind(tmp_path):
    file = tmp_path / "faq.tsv"
    file.write_text("anchor\tpositive\na\tb\nc\td\n")
    assert find_task(str(file), SetSource()).main == "ndcg@10"
    assert find_task(f"retrieval:{file}", SetSource()).main == "ndcg@10"
    with pytest.raises(InputError):
        find_task(f"classification:{file}", SetSource())


def test_a_missing_folder_is_refused(tmp_path):
    with pytest.raises(InputError, match="no such folder"):
        load_suites(["sts"], SetSource(tmp_path / "none"))
