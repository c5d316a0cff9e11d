"""Messages: place, found, wanted, next; all problems counted, ten shown."""

from sentloom.errors import DataError, InputError, Problem, first_line


def test_the_first_line_of_another_librarys_error():
    assert first_line(ValueError("\nno such file\nmore")) == "no such file"
    assert first_line(KeyError()) == "KeyError"


def test_an_error_says_all_four_things():
    error = InputError("option k", "0", "1 or more", "ask for at least one")
    assert str(error) == "option k: 0. Expected 1 or more.\nAsk for at least one."
    assert error.exit_code == 2


def test_ten_problems_are_shown_and_all_are_counted():
    problems = [Problem("a.csv", f"line {i}", "3 cells", "2 cells") for i in range(1, 26)]
    lines = str(DataError(problems, total=250, fix="mend them")).splitlines()
    assert lines[0] == "a.csv, line 1: 3 cells. Expected 2 cells."
    assert lines[9].startswith("a.csv, line 10:")
    assert lines[10:] == ["... and 240 more problems, 250 in all:", "Mend them."]
