"""Suites and stages of installed packages, here a real one in a folder on the path."""

import sys

import pytest

from sentloom.engine.stages import STAGES, Stage
from sentloom.engine.stages.synthesize import Synthesize
from sentloom.evaluation.suites import SUITES
from sentloom.lab.stages import STAGES as STAGES_OF_THE_LAB
from sentloom.plugins import Registry, offered

REGISTRIES = (SUITES, STAGES)
CODE = """
from sentloom.engine.stages import Stage
from sentloom.evaluation.task import Suite
from sentloom.evaluation.user_tasks import own_task

def load(name, origin):
    return own_task(None, str(origin.folder / f"{name}.tsv"), origin)

class Quiet(Stage):
    pass

SUITES = {"helpdesk": Suite("helpdesk", ("chat",), load, ()), "sts": Suite("sts", (), load, ())}
STAGES = {"quiet": Quiet, "synthesize": Quiet, "denoising": Quiet}
"""
ENTRY_POINTS = """
[sentloom.suites]
a-helpdesk = helpdesk_of_ours:SUITES

[sentloom.stages]
a-helpdesk = helpdesk_of_ours:STAGES
"""


def forget():
    for registry in REGISTRIES:
        vars(registry).pop("_everything", None)


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """What pip leaves in site-packages: the module and its metadata. Before and after, names are looked up anew."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "helpdesk_of_ours.py").write_text(CODE, "utf-8")
    info = tmp_path / "helpdesk_of_ours-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: helpdesk-of-ours\nVersion: 1.0\n", "utf-8")
    (info / "entry_points.txt").write_text(ENTRY_POINTS, "utf-8")
    forget()
    yield
    forget()
    sys.modules.pop("helpdesk_of_ours", None)


@pytest.mark.usefixtures("installed")
def test_a_package_adds_a_suite_which_evaluate_scores(sentloom, tmp_path):
    rows = "".join(f"how much is ticket {number}\tticket {number} costs {3 * number}\n" for number in range(30))
    (tmp_path / "chat.tsv").write_text(f"question\tanswer\n{rows}", "utf-8")
    done = sentloom("evaluate", "tf-idf", "--suite", "helpdesk", "--data", tmp_path, "-o", tmp_path / "scores.md")
    assert done.returncode == 0, done.stderr
    assert "### helpdesk" in (tmp_path / "scores.md").read_text("utf-8")
    assert list(SUITES)[-1] == "helpdesk"


@pytest.mark.usefixtures("installed")
def test_a_package_adds_a_stage_and_is_imported_when_a_name_is_not_our_own():
    assert "synthesize" in STAGES
    assert STAGES["views"].__name__ == "Views"
    assert "helpdesk_of_ours" not in sys.modules
    assert issubclass(STAGES["quiet"], Stage)
    assert STAGES["quiet"].__module__ == "helpdesk_of_ours"
    assert len(STAGES) == len(list(STAGES))
    with pytest.raises(KeyError):
        STAGES["loud"]


@pytest.mark.usefixtures("installed")
def test_our_own_names_are_not_replaced_nor_the_labs():
    assert SUITES["sts"].sets[0] == "STS12"
    assert STAGES["synthesize"] is Synthesize
    assert STAGES["denoising"] is STAGES_OF_THE_LAB["denoising"]


@pytest.mark.usefixtures("installed")
def test_the_labs_entry_points_come_first_and_nothing_is_imported():
    assert [point.name for point in offered("sentloom.suites")] == ["lab", "a-helpdesk"]
    assert "helpdesk_of_ours" not in sys.modules


def test_a_registry_without_packages():
    registry = Registry("sentloom.nothing", {"a": 1})
    assert dict(registry) == {"a": 1}
    assert "b" not in registry
