"""The fault bench itself, on a small sample: what it counts, what it prints and saves, and when it fails."""

import os
import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BENCH = ROOT / "tests/faults"
SAMPLE = {
    "test_one": '''
        import pytest
        FAULT = "2. two"
        ASKED = 7
        WHY_FEWER = "time is short"

        def test_good(): pass

        @pytest.mark.parametrize("value", [1, 2, 3])
        def test_of_three_one_fails(value): assert value != 2

        @pytest.mark.xfail(reason="nobody fixed it")
        def test_known(): assert False

        @pytest.mark.skip(reason="no such machine")
        def test_skipped(): pass
    ''',
    "test_tallies": '''
        import pytest
        FAULT = "10. tallies"
        ASKED = 3

        def test_cases(tally):
            for number in range(100):
                with tally.case(f"case {number}", known="seven is known" if number == 7 else None):
                    assert number not in (7, 8, 9)

        @pytest.mark.xfail(reason="all sixes")
        def test_known_cases(tally):
            for number in range(10):
                with tally.case("six"):
                    assert number not in (6, 7)
    ''',
    "test_strict": '''
        import pytest
        FAULT = "strict"
        ASKED = 4

        @pytest.mark.xfail(reason="fixed in the meantime")
        def test_fixed(): pass

        def test_fixed_case(tally):
            with tally.case("case", known="fixed in the meantime"):
                pass

        def test_nothing(tally): pass
    ''',
    "test_phases": '''
        import pytest
        FAULT = "phases"

        @pytest.fixture
        def broken(): raise OSError

        @pytest.fixture
        def breaks_later():
            yield
            raise OSError

        def test_setup(broken): pass
        def test_teardown(breaks_later): pass
        def test_both(breaks_later): raise OSError
    ''',
    "test_dead": '''
        import os
        FAULT = "dead worker"
        def test_dies(): os._exit(3)
    ''',
    "test_import": '''
        FAULT = "no import"
        import no_such_module
    ''',
    "test_examples": '''
        from hypothesis import given, settings, strategies
        FAULT = "examples"

        @settings(max_examples=40, database=None)
        @given(strategies.integers())
        def test_any(number): pass
    ''',
}  # fmt: skip


@pytest.fixture
def run(tmp_path):
    """Run the bench over modules; the process itself, with a function that gives its output and its table."""
    sample = tmp_path / "sample"
    sample.mkdir()
    (sample / "conftest.py").write_text((BENCH / "conftest.py").read_text("utf-8"))
    (sample / "pytest.ini").write_text("[pytest]\nxfail_strict = true\nmarkers =\n    fault: a fault\n")
    (tmp_path / "faults.md").write_text("old")

    def start(modules, *options):
        for name, text in modules.items():
            (sample / f"{name}.py").write_text(textwrap.dedent(text))
        command = [sys.executable, "-m", "pytest", "-p", "tests.faults.table", "--faults-table=../faults.md"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": ""}
        return subprocess.Popen(
            [*command, "--continue-on-collection-errors", *options],
            cwd=sample,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background job ignores it
        )

    return start


def table(page):
    """The rows of the table: name -> asked, tried, held, failed, known."""
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| ")]
    return {row[0]: tuple(row[2:7]) for row in rows[1:]}


@pytest.mark.long
def test_every_outcome_is_counted_in_its_row(run, tmp_path):
    process = run(SAMPLE, "--numprocesses", "2", "--dist", "worksteal")
    said = process.communicate()[0]
    assert process.returncode == 1
    page = (tmp_path / "faults.md").read_text()
    assert page in said
    expected = {
        "2. two": ("7", "5", "3", "1", "1"),
        "10. tallies": ("3", "110", "105", "2", "3"),
        "dead worker": ("", "1", "0", "1", "0"),
        "examples": ("", "40", "40", "0", "0"),
        "no import": ("", "1", "0", "1", "0"),
        "phases": ("", "3", "0", "3", "0"),
        "strict": ("4", "3", "0", "3", "0"),
    }
    assert table(page) == expected
    assert list(table(page)) == list(expected)  # by number, the others after them
    for line in (
        "- 2. two: time is short",
        "- strict: fewer, and no reason is given",
        "- 2. two: nobody fixed it",
        "- 2. two: no such machine",
        "- dead worker: test_dies",
        "- phases: test_setup",
        "- 10. tallies: seven is known",
        "- 10. tallies: all sixes (2 times)",
    ):
        assert line in page.splitlines()


def test_a_good_run_ends_well(run, tmp_path):
    process = run({"test_good": 'FAULT = "1. good"\ndef test_it(): pass'})
    process.communicate()
    assert process.returncode == 0
    page = (tmp_path / "faults.md").read_text()
    assert table(page) == {"1. good": ("", "1", "1", "0", "0")}
    assert re.search(r"on \d+ cores of .+; Python [\d.]+, torch [\d.]+", page)
    assert "## Known faults\n\nNone.\n" in page
    assert "## Skipped" not in page


@pytest.mark.long
def test_a_run_that_is_interrupted_prints_what_it_has_and_saves_nothing(run, tmp_path):
    slow = 'import time\nFAULT = "2. slow"\ndef test_it(): time.sleep(60)\n'
    process = run({"test_a": 'FAULT = "1. good"\ndef test_it(): pass', "test_z": slow}, "--numprocesses", "1", "-v")
    while "PASSED test_a.py" not in process.stdout.readline():
        assert process.poll() is None
    os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C does
    said = process.communicate()[0]
    assert process.returncode == 2
    assert table(said) == {"1. good": ("", "1", "1", "0", "0")}
    assert "Interrupted: the table above is partial" in said
    assert (tmp_path / "faults.md").read_text() == "old"


def test_the_next_run_skips_what_held(run, tmp_path):
    first = {
        "test_a": 'FAULT = "1. good"\ndef test_it(): pass',
        "test_b": 'FAULT = "2. changed"\ndef test_it(): pass',
        "test_c": 'FAULT = "3. corrected"\ndef test_it(): assert False\ndef test_other(): pass',
    }
    run(first).communicate()
    assert table((tmp_path / "faults.md").read_text())["3. corrected"] == ("", "2", "1", "1", "0")
    process = run({"test_b": first["test_b"] + "  # changed", "test_c": first["test_c"].replace("False", "True")}, "-v")
    said = process.communicate()[0]
    assert process.returncode == 0
    assert re.findall(r"^test_.*PASSED", said, re.MULTILINE) == [
        *("test_b.py::test_it PASSED", "test_c.py::test_it PASSED", "test_c.py::test_other PASSED"),
    ]
    page = (tmp_path / "faults.md").read_text()
    assert set(table(page)) == {"1. good", "2. changed", "3. corrected"}
    assert table(page)["3. corrected"] == ("", "2", "2", "0", "0")
    assert "in 2 parts" in page
    assert not (tmp_path / "sample/out/faults.jsonl").exists()  # nothing failed: the next run is a new one


def test_every_module_of_the_bench_names_its_row():
    unnamed = [
        path.name for path in BENCH.glob("test_*.py") if not re.search(r'(?m)^FAULT = "', path.read_text("utf-8"))
    ]
    assert unnamed == []
