"""The tables of a synthesis show the numbers that were counted."""

from dataclasses import replace

from sentloom.lab.synthesis_tables import bar, synthesis
from tests.report.printing import printed
from tests.report.small_summaries import EMPTY, QUERIES, SUMMARY


def lines(summary):
    return [line for part in synthesis(summary) for line in printed(part).splitlines() if line.strip()]


def test_yields_stand_in_the_table():
    text = lines(SUMMARY)
    assert text[0].strip() == "Synthesis: 100 of 1,000 sources; threshold 0.9"
    rows = [line.split() for line in text]
    assert ["written", "100", "100.0%", "100", "100.0%"] in rows
    assert ["kept", "60", "60.0%", "25", "25.0%"] in rows
    assert ["dropped:", "score", "30", "30.0%", "70", "70.0%"] in rows
    assert ["dropped:", "equal", "10", "10.0%", "0", "0.0%"] in rows
    assert not [row for row in rows if "substring" in row]  # a filter that dropped nothing has no row
    assert text[-1] == "20 triplets and 35 pairs from 100 sources"


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


def test_queries_have_styles_relevance_and_tokens_and_no_triplets():
    text = lines(QUERIES)
    assert text[0].strip() == "Synthesis: 10 sources; a query must find its source first"
    rows = [line.split() for line in text]
    assert next(row for row in rows if row[:3] == ["2", "to", "4"])[-1] == "5"
    assert next(row for row in rows if row[:2] == ["below", "-10"])[-1] == "4"
    assert next(row for row in rows if row[:3] == ["10", "or", "more"])[-1] == "1"
    (sample,) = [row for row in rows if "1.000" in row]
    assert sample[:3] == ["1.000", "3.2", "title"]
    assert sample[-3:] == ["L...", "A", "title"]  # a long source is cut
    assert text[-2:] == [
        "tokens of the writer: query 900 read, 70 written",
        "tokens of all requests to the endpoint: 1,234",
    ]
    assert not [line for line in text if "triplets" in line]
    assert text[-3] == "6 pairs from 10 sources"


def test_if_nothing_was_kept_there_is_advice():
    nothing = replace(SUMMARY, triplets=0, pairs=0)
    assert "Nothing was kept." in " ".join(lines(nothing))
    assert "Nothing was kept." not in " ".join(lines(SUMMARY))


def test_an_empty_ledger_has_its_tables():
    assert "0 triplets" in "\n".join(lines(EMPTY))
