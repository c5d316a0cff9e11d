"""What is said of an input, and what is refused: files written for the purpose."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from sentloom.data.shapes import Shape
from sentloom.errors import DataError, InputError
from sentloom.fitting.inputs import (
    InputSource,
    describe_input,
    look,
    read_inputs,
    refuse_too_little,
    sources_of,
)
from sentloom.fitting.request import Request
from sentloom.fitting.shapes import handler
from sentloom.fitting.shapes.pairs import is_titled


@pytest.fixture(autouse=True)
def _scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SENTLOOM_SCRATCH", str(tmp_path / "scratch"))


NOUNS = "lamp chair river cloud train garden letter window bridge market".split()
VERBS = "is was has had will would may might could should".split()


def sentence(number: int) -> str:
    """Ten thousand different sentences of six words, in plain enough English."""
    a, b, c, d = (number // 10**place % 10 for place in range(4))
    return f"The {NOUNS[a]} {VERBS[b]} in the {NOUNS[c]}{NOUNS[d]}."


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Write a file of rows into the folder that the test works in, and give its name."""
    monkeypatch.chdir(tmp_path)

    def make(name: str, *rows: str) -> str:
        Path(name).write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
        return name

    return make


def pairs(count: int, start: int = 0) -> list[str]:
    return [f"{sentence(number)}\t{sentence(9999 - number)}" for number in range(start, start + count)]


def test_an_input_in_one_line(write) -> None:
    rows = pairs(970)
    name = write("faq.tsv", "question\tanswer\tid", *(f"{row}\t{n}" for n, row in enumerate([*rows, *rows[:30]])))
    (fit_input,) = look([InputSource(name)])
    lines = describe_input(fit_input)
    assert lines[0] == "faq.tsv: 1,000 pairs (question, answer), English, median 6 words, 3.0% repeated rows"
    assert lines[1].startswith("970 rows are used")
    assert "columns not used: id" in lines
    assert (len(fit_input.data), fit_input.inspection.rows, fit_input.inspection.duplicate_rows) == (970, 1000, 30)
    assert (fit_input.language, fit_input.languages, fit_input.words) == ("en", {"anchor": "en", "positive": "en"}, 6)
    refuse_too_little(fit_input)


def test_texts_with_titles_are_pairs(write) -> None:
    rows = [f"{n},Title {n},{sentence(n)}" for n in range(150)] + [f"{n},,{sentence(n)}" for n in range(150, 180)]
    (fit_input,) = look([InputSource(write("docs.csv", "id,Title,text", *rows))])
    assert (fit_input.data.shape, len(fit_input.data), is_titled(fit_input.data)) == (Shape.PAIRS, 150, True)
    assert fit_input.data[0] == {"anchor": "Title 0", "positive": sentence(0)}
    lines = describe_input(fit_input)
    assert lines[0].startswith("docs.csv: 180 pairs (title, text), English")
    assert "skipped: 30 texts without a title" in lines
    assert "columns not used: id" in lines
    named = InputSource("docs.csv", columns={"text": "text", "title": "Title"})
    assert look([named])[0].data["anchor"] == fit_input.data["anchor"]
    (body,) = look([InputSource(write("body.csv", "title,body", *(row.partition(",")[2] for row in rows[:150])))])
    assert is_titled(body.data)
    (raw,) = look([InputSource("docs.csv")], as_pairs=False)
    assert raw.data.shape is Shape.TEXTS


def test_titles_of_few_texts_are_left_out(write) -> None:
    rows = [f"{'Title' if n < 40 else ''},{sentence(n)}" for n in range(150)]
    (fit_input,) = look([InputSource(write("docs.csv", "title,text", *rows))])
    assert (fit_input.data.shape, len(fit_input.data), fit_input.data.table.column_names[0]) == (
        Shape.TEXTS,
        150,
        "text",
    )


def test_two_languages_and_two_lengths_are_named(write) -> None:
    rows = [f"{sentence(number)}\tDer Hund Nummer {number} ist nicht in dem Haus." for number in range(150)]
    (fit_input,) = look([InputSource(write("de.tsv", "source\ttarget", *rows))])
    first = "de.tsv: 150 translated sentences (source, target), English and German, median 6 and 9 words"
    assert describe_input(fit_input)[0] == f"{first}, no repeated rows"
    assert fit_input.languages == {"source": "en", "target": "de"}


def test_mixed_languages_are_told_with_their_shares_and_are_not_called_english(write) -> None:
    english = [f"{sentence(number)}" for number in range(130)]
    german = [f"Der Hund Nummer {number} ist nicht in dem Haus." for number in range(70)]
    (fit_input,) = look([InputSource(write("mixed.txt", *english, *german))])
    assert "mixed languages: English 65%, German 35%," in describe_input(fit_input)[0]
    assert fit_input.shares == {"en": 0.65, "de": 0.35}
    assert fit_input.language is None  # back-translation, which begins with English, is not for it


def test_raw_text_names_no_columns_and_an_unknown_language_is_said(write) -> None:
    (fit_input,) = look([InputSource(write("codes.txt", *(f"zxq{number} vbn{number * 7}" for number in range(200))))])
    first = "codes.txt: 200 sentences, an unrecognised language, median 2 words, no repeated rows"
    assert describe_input(fit_input)[0] == first
    assert fit_input.language is None


def test_near_repeats_labels_scores_and_faults_have_lines_of_their_own(write) -> None:
    texts = [sentence(number) for number in range(154)]
    (fit_input,) = look(
        [InputSource(write("mood.tsv", "text\tlabel", *(f"{text}\tmood {n % 7}" for n, text in enumerate(texts))))]
    )
    lines = describe_input(fit_input)
    assert any(line.startswith("labels: mood 0 22, mood 1 22") and line.endswith(" and 2 more") for line in lines)
    rows = [f"{row}\t{n % 6}" for n, row in enumerate(pairs(120))]
    (scored,) = look([InputSource(write("s.tsv", "sentence1\tsentence2\tscore", *rows))])
    assert "scores from 0 to 5" in describe_input(scored)
    (marked,) = look([InputSource(write("html.txt", *(sentence(n) for n in range(120)), "The <b>lamp</b> is on."))])
    assert "text that looks like HTML: 1 rows, first at html.txt, line 121" in describe_input(marked)
    long = " ".join(texts[:8])
    copies = [f"{long} {long[::-1]} {tail}" for tail in ("one", "two", "six", "ten")]
    (near,) = look(
        [InputSource(write("near.txt", *(f"{n} {n * 31} {n * 77} {n * 1001} zero" for n in range(96)), *copies))]
    )
    assert "3.0% of the rows nearly repeat another one" in describe_input(near)


def refusal(name: str) -> InputError:
    with pytest.raises(InputError) as caught:
        refuse_too_little(look([InputSource(name)])[0])
    assert caught.value.where == name
    return caught.value


def test_twenty_sentences_are_too_few(write) -> None:
    error = refusal(write("few.txt", *(sentence(number) for number in range(20))))
    assert error.problem == "20 sentences"
    assert "at least 60 different ones" in error.expected
    assert error.fix.startswith("add at least 40 more;")


@pytest.mark.parametrize("again", ["The lamp is on.", "the LAMP is on", "The lamp  is on !"])
def test_repeated_sentences_do_not_count(write, again: str) -> None:
    error = refusal(write("same.txt", "The lamp is on.", *[again] * 500))
    assert error.problem == "501 sentences, 1 of them different"
    assert "repeated rows" in error.fix


def test_pairs_whose_sides_are_all_the_same_leave_nothing(write) -> None:
    rows = [f"{sentence(number)}\t{sentence(number)}" for number in range(200)]
    error = refusal(write("twins.tsv", "anchor\tpositive", *rows))
    assert error.problem == "200 pairs, 0 of them different"
    assert "two sides are the same" in error.fix


def test_sixty_are_enough_and_one_less_is_not(write) -> None:
    refuse_too_little(look([InputSource(write("enough.txt", *(sentence(number) for number in range(60))))])[0])
    assert refusal(write("less.txt", *(sentence(number) for number in range(59)))).problem == "59 sentences"


def test_rows_about_a_few_texts_cannot_be_held_out(write) -> None:
    rows = [f"{sentence(number)}\tanswer {number % 5}" for number in range(400)]
    error = refusal(write("five.tsv", "question\tanswer", *rows))
    assert error.problem == "400 pairs with 5 different texts on one side"


@pytest.mark.parametrize(
    ("head", "tail", "problem"),
    [
        ("text\tlabel", "good", "there is only one label, good"),
        ("premise\thypothesis\tlabel", "neutral", "the labels are neutral"),
        ("sentence1\tsentence2\tscore", "3.5", "there is only one score, 3.5"),
    ],
)
def test_one_class_tells_nothing(write, head: str, tail: str, problem: str) -> None:
    rows = pairs(150) if head.count("\t") == 2 else [sentence(number) for number in range(150)]
    error = refusal(write("one.tsv", head, *(f"{row}\t{tail}" for row in rows)))
    assert error.problem == problem
    assert "label more rows" in error.fix


def test_entailments_alone_are_something_to_learn_from(write) -> None:
    rows = [f"{row}\tentailment" for row in pairs(150)]
    (fit_input,) = look([InputSource(write("entailed.tsv", "premise\thypothesis\tlabel", *rows))])
    refuse_too_little(fit_input)  # is not refused
    assert fit_input.data.shape is Shape.PAIRS  # there is nothing to contradict
    assert len(fit_input.data) == 150


def test_an_empty_file_is_refused_by_the_reader(write) -> None:
    with pytest.raises(DataError, match="the file is empty"):
        look([InputSource(write("empty.txt"))])


def look_at(name):
    """The first line about a file."""
    request, said = Request(data=(name,), output=Path("model")), []
    read_inputs(sources_of(request), request, said.append)
    return said[0]


def test_a_file_is_described_and_too_little_is_refused(write) -> None:
    texts = write("texts.txt", *(sentence(number) for number in range(200)))
    assert look_at(texts).startswith("texts.txt: 200 sentences, English")
    with pytest.raises(InputError, match="45 sentences"):
        look_at(write("few.txt", *(sentence(number) for number in range(45))))
    with pytest.raises(InputError, match="no such file"):
        look_at("missing.csv")


def test_labels_that_occur_once_are_refused(write) -> None:
    once = write("once.tsv", "text\tlabel", *(f"{sentence(number)}\tlabel {number}" for number in range(80)))
    with pytest.raises(InputError, match="each of the 80 labels occurs in one row only"):
        look_at(once)


def test_what_is_needed_to_look_at_files_does_not_load_pytorch() -> None:
    code = "import sys, sentloom.cli.fitting, sentloom.fitting.inputs; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_pairs_of_a_search_log_train_as_often_as_their_clicks_say(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(
        "query,clicked,count\nvpn,Connect from home,14\nvpn,Cards,1\ncard,Cards,3\nbadge,Cards,0\n", "utf-8"
    )
    (fit_input,) = look([InputSource(str(path))])
    (part,) = handler(fit_input.data).training_parts(fit_input.data)
    assert Counter(zip(part["anchor"], part["positive"], strict=True)) == {
        ("vpn", "Connect from home"): 3,
        ("vpn", "Cards"): 1,
        ("card", "Cards"): 2,
        ("badge", "Cards"): 1,
    }
