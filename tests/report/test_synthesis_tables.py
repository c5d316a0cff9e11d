"""The tables of a synthesis show the numbers that were counted."""

from sentloom.report.synthesis_tables import bar, synthesis
from tests.report.printing import printed
from tests.report.small_summaries import EMPTY, SUMMARY


def lines(summary):
    return [line for part in synthesis(summary) for line in printed(part).splitlines() if line.strip()]


def test_yields_stand_in_the_table():
    found = lines(SUMMARY)
    assert found[0].strip() == "Synthesis: 100 of 1,000 sources; threshold 0.9"
    rows = [line.split() for line in found]
    assert ["written", "100", "100.0%", "100", "100.0%"] in rows
    assert ["kept", "60", "60.0%", "25", "25.0%"] in rows
    assert ["dropped:", "score", "30", "30.0%", "70", "70.0%"] in rows
    assert ["dropped:", "equal", "10", "10.0%", "0", "0.0%"] in rows
    assert not [row for row in rows if "substring" in row]  # a filter that dropped nothing has no row
    assert found[-1].startswith("20 triplets (0.20 per source); 35 pairs")


def test_the_histogram_counts_in_tenths():
    rows = [line.split() for line in lines(SUMMARY)]
    assert next(row for row in rows if row[:3] == ["0.9", "to", "1.0"])[4::2] == ["80", "25"]
    assert next(row for row in rows if row[:3] == ["0.0", "to", "0.1"])[-1] == "30"


def test_bars_are_in_proportion():
    assert bar(1, 10) == "█" * 10
    assert bar(0.5, 10) == "█" * 5
    assert bar(0.25, 3) == "▊"
    assert bar(0.0001, 10) == "▏"
    assert bar(0, 10) == ""


def test_samples_are_five_and_as_they_are():
    text = "\n".join(lines(SUMMARY))
    assert "A man [bold]plays" in text
    assert "contradiction: kept: none" in text
    assert text.count("number 4") == 2
    assert "number 5" not in text


def test_an_empty_ledger_has_its_tables():
    assert "0 triplets" in "\n".join(lines(EMPTY))
