"""Tables for the terminal: numbers are on the right, and no column is cut."""

from sentloom.report.tables import Wide, plain_table
from tests.report.printing import printed


def test_the_last_columns_hold_numbers():
    table = plain_table("title", "name", "score", numbers=1)
    assert [column.justify for column in table.columns] == ["left", "right"]


def test_a_wide_table_continues_below_with_every_cell():
    columns = [f"set {number}" for number in range(12)]
    cells = [f"{number}.{number}{number}" for number in range(12)]
    wide = Wide("scores", columns, [[("a model", cells)], [("short", cells[:2])]])
    text = printed(wide, 50)
    assert all(text.count(column) >= 1 for column in columns)
    assert all(cell in text for cell in cells)
    assert text.count("a model") == text.count("scores") > 1
    assert max(map(len, text.splitlines())) <= 50
    assert printed(wide, 500).count("a model") == 1
