"""What becomes of the rows of a fit: every row that was read trains, validates, tests, or is left out for a reason."""

import csv
import json
import random
import re

import pytest

import sentloom as loom

SYLLABLES = [a + b for a in "bdfgklmnprst" for b in "aeiou"]
LINE = re.compile(r"(?P<name>.*): (?P<read>[\d,]+) rows read: (?P<train>[\d,]+) train, (?P<validation>[\d,]+) validation, "
                  r"(?P<test>[\d,]+) test, (?P<left_out>[\d,]+) left out( \((?P<why>.*)\))?")  # fmt: skip


def texts(count, seed):
    """Different ones, of made-up words."""
    draw = random.Random(seed)
    words = ["".join(draw.sample(SYLLABLES, 2)) for _ in range(400)]
    return list(dict.fromkeys(" ".join(draw.sample(words, 7)).capitalize() + "." for _ in range(2 * count)))[:count]


@pytest.fixture
def base(sentloom, tmp_path_factory):
    """A small model, made once."""
    folder = tmp_path_factory.getbasetemp() / "small-base"
    if not folder.exists():
        folder.mkdir()
        (folder / "texts.txt").write_text("\n".join(texts(300, 1)) + "\n", "utf-8")
        small = ["--layers", 1, "--width", 32, "--vocabulary", 300, "--max-length", 32]
        assert sentloom("lab", "init-model", folder / "texts.txt", "-o", folder / "model", *small).returncode == 0
    return folder / "model"


class Divided(Exception):
    """Raised when the rows are divided, so that nothing is trained."""


def divided(data, base, folder, count=1, **options):
    """What a fit says about its rows, as numbers."""
    found = []

    def log(line):
        if said := LINE.fullmatch(line):
            found.append(
                {k: v if k in ("name", "why") else int(v.replace(",", "")) for k, v in said.groupdict().items()}
            )
            if len(found) == count:
                raise Divided

    with pytest.raises(Divided):
        loom.fit(data, folder / "model", base=str(base), budget="10steps", log=log, **options)
    return found


def write_csv(path, head, rows):
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([head.split(), *rows])
    return path, len(rows)


def read_csv(path):
    with path.open(encoding="utf-8", newline="") as file:
        return [*csv.reader(file)][1:]


def write_jsonl(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path, len(rows)


def messy_texts(folder):
    some = texts(200, 2)
    rows = [(one,) for one in [*some, *some[:7], some[8].replace(" ", "  "), ""]]
    return write_csv(folder / "t.csv", "text", rows)


def messy_lines(folder):
    some = texts(200, 2)
    lines = [*some[:100], "", "  ", *some[90:]]  # blank lines are no rows
    (folder / "t.txt").write_text("\n".join(lines) + "\n\n", "utf-8")
    return folder / "t.txt", len(lines) - 2


def messy_titles(folder):
    some = texts(400, 3)
    rows = [
        ("" if at % 7 == 0 else title, text)
        for at, (title, text) in enumerate(zip(some[:200], some[200:], strict=True))
    ]
    return write_csv(folder / "d.csv", "title text", [*rows, *rows[:4], ("a title", "")])


def messy_pairs(folder):
    some = texts(500, 4)
    rows = [*zip(some[:200], some[200:400], strict=True), *((one, some[200]) for one in some[400:450])]
    rows += [*rows[:9], (some[450], some[450]), (some[451], ""), ("", some[452]), (some[0].upper(), some[453])]
    return write_csv(folder / "p.csv", "question answer", rows)


def messy_triplets(folder):
    some = texts(640, 5)
    draw = random.Random(0)
    rows = [
        {"question": a, "answer": b, "negatives": draw.sample(some[600:] if at % 2 else some[300:600], at % 4)}
        for at, (a, b) in enumerate(zip(some[:300], some[300:600], strict=True))
    ]
    rows += [*rows[:6], {"question": some[0], "answer": "", "negatives": some[3:5]}]
    return write_jsonl(folder / "t.jsonl", rows)


def messy_scores(folder):
    some = texts(480, 6)
    rows = [(a, b, at % 5) for at, (a, b) in enumerate(zip(some[:240], some[240:], strict=True))]
    return write_csv(folder / "s.csv", "sentence1 sentence2 score", [*rows, *rows[:5], ("a", "", "x"), ("a", "b", "")])


def messy_grades(folder):
    some = texts(480, 7)
    rows = [(a, b, at % 3) for at, (a, b) in enumerate(zip(some[:240], some[240:], strict=True))]
    return write_csv(folder / "g.csv", "query document relevance", [*rows, *rows[:5], ("a", "b", "c")])


def messy_nli(folder, premises=100):
    some = texts(premises * 4, 8)
    rows = [
        {
            "premise": some[4 * at],
            "hypothesis": some[4 * at + n],
            "label": ("entailment", "neutral", "contradiction")[n - 1],
        }
        for at in range(premises)
        for n in (1, 2, 3)
    ]
    rows += [*rows[:5], *({**row, "label": "-"} for row in rows[:8])]
    return write_jsonl(folder / "n.jsonl", rows)


def messy_translations(folder):
    some = texts(400, 9)
    left, right = [*some[:200], *some[:6], some[7], "", some[8]], [*some[200:400], *some[200:206], "", some[9], some[8]]
    for name, lines in (("c.en", left), ("c.de", right)):
        (folder / name).write_text("\n".join(lines) + "\n", "utf-8")
    return f"{folder}/c.en+{folder}/c.de", len(left)


def messy_labels(folder):
    some = texts(240, 10)
    rows = [(one, f"label {at % 6}") for at, one in enumerate(some)]
    return write_csv(folder / "l.csv", "text label", [*rows, *rows[:11], ("", "label 1"), (some[0], "label 5")])


SHAPES = [
    messy_texts, messy_lines, messy_titles, messy_pairs, messy_triplets, messy_scores, messy_grades, messy_nli,
    messy_translations, messy_labels,
]  # fmt: skip


def assert_adds_up(found, read):
    assert found["read"] == read
    assert found["read"] == found["train"] + found["validation"] + found["test"] + found["left_out"]
    whys = re.findall(r"(?:^|, )([\d,]*\d) (?=[a-z])", found["why"] or "")
    assert sum(int(count.replace(",", "")) for count in whys) == found["left_out"]
    assert found["train"]
    assert found["test"]


@pytest.mark.parametrize("messy", SHAPES)
def test_rows_add_up_for_every_shape(messy, base, tmp_path):
    data, read = messy(tmp_path)
    (found,) = divided(data, base, tmp_path)
    assert_adds_up(found, read)
    assert found["left_out"] > 0


def test_nli_with_enough_contradictions_stays_nli(base, tmp_path):
    data, read = messy_nli(tmp_path, premises=260)
    (found,) = divided(data, base, tmp_path)
    assert_adds_up(found, read)


def test_few_rows_that_are_cross_validated_have_no_validation_rows(base, tmp_path):
    rows = list(zip(texts(80, 11), texts(160, 12)[80:], strict=True))
    data, read = write_csv(tmp_path / "few.csv", "question answer", [*rows, *rows[:3]])
    (found,) = divided(data, base, tmp_path)
    assert_adds_up(found, read)
    assert found["validation"] == 0
    assert found["left_out"] == 3


def test_several_inputs_with_texts_in_common(base, tmp_path):
    made = [messy(tmp_path) for messy in (messy_texts, messy_pairs, messy_labels)]
    (folder := tmp_path / "other").mkdir()
    again = read_csv(tmp_path / "p.csv")[:80]
    made.append(write_csv(folder / "more.csv", "question answer", [(a, b[::-1]) for a, b in again if a and b]))
    found = divided([path for path, _ in made], base, tmp_path, count=len(made))
    for one, (_, read) in zip(found, made, strict=True):
        assert_adds_up(one, read)


def test_rows_in_memory_with_empty_cells(base, tmp_path):
    some = texts(400, 13)
    rows = [*zip(some[:200], some[200:], strict=True)]
    (found,) = divided([*rows, *rows[:4], ("", "nothing"), ("nothing", "")], base, tmp_path)
    assert_adds_up(found, 206)
    assert "4 repeated rows" in found["why"]
    assert found["left_out"] >= 6


def test_a_set_that_decides_takes_rows_out_of_training(base, tmp_path):
    data, read = messy_pairs(tmp_path)
    against, _ = write_csv(tmp_path / "asked.csv", "question answer", read_csv(data)[20:60])
    (found,) = divided(data, base, tmp_path, against=[against])
    assert_adds_up(found, read)
    assert f"40 rows with sentences of {against}" in found["why"]


def shared_negatives(folder):
    """Pairs with three negatives each, from a pool of 40 texts."""
    some, draw = texts(640, 14), random.Random(0)
    rows = [(a, b, *draw.sample(some[600:], 3)) for a, b in zip(some[:300], some[300:600], strict=True)]
    return write_csv(folder / "mined.csv", "question answer negative_1 negative_2 negative_3", rows)


def test_shared_negatives_cost_no_rows(base, tmp_path):
    data, read = shared_negatives(tmp_path)
    (found,) = divided(data, base, tmp_path)
    assert_adds_up(found, read)
    assert found["left_out"] <= 0.03 * read
    assert found["test"] >= 25


def test_negatives_from_other_answers_cost_no_rows_and_no_test_text_is_trained_on(base, tmp_path):
    some, draw = texts(600, 15), random.Random(0)
    answers = some[300:]
    rows = [(a, b, draw.choice([c for c in answers if c != b])) for a, b in zip(some[:300], answers, strict=True)]
    data, read = write_csv(tmp_path / "mined.csv", "question answer negative", rows)
    done = loom.fit(data, tmp_path / "model", base=str(base), budget="10steps", force=True)
    report = json.loads((tmp_path / "model.fit" / "report.json").read_text("utf-8"))
    (source,) = report["sources"]
    counts = source["rows"]
    assert counts["read"] == read == counts["train"] + counts["validation"] + counts["test"]
    assert counts["left_out"] == {}
    files = {
        name: tmp_path / "model.fit" / "data" / f"1-triplets-{name}.parquet" for name in ("train", "validation", "test")
    }
    rows = {name: loom.read(path, shape="triplets") for name, path in files.items()}
    assert {name: len(some) for name, some in rows.items()} == {name: counts[name] for name in rows}
    trained = {
        *rows["train"]["anchor"],
        *rows["train"]["positive"],
        *(t for some in rows["train"]["negatives"] for t in some),
    }
    for side in ("validation", "test"):
        assert not trained & {*rows[side]["anchor"], *rows[side]["positive"]}
    assert any(not some for some in rows["train"]["negatives"])  # these train as pairs
    assert done.report.exists()


def test_the_command_says_what_the_report_has(sentloom, base, tmp_path):
    data, read = messy_pairs(tmp_path)
    done = sentloom("fit", data, "-o", tmp_path / "model", "--base", base, "--budget", "10steps", "--force")
    assert done.returncode == 0, done.stdout + done.stderr
    (line,) = (line for line in done.stdout.splitlines() if " rows read: " in line)
    report = json.loads((tmp_path / "model.fit" / "report.json").read_text("utf-8"))
    (source,) = report["sources"]
    rows = source["rows"]
    assert rows["read"] == read == rows["train"] + rows["validation"] + rows["test"] + sum(rows["left_out"].values())
    parts = [f"{rows[part]:,} {part}" for part in ("train", "validation", "test")]
    why = ", ".join(f"{count:,} {reason}" for reason, count in rows["left_out"].items())
    left_out = f"{sum(rows['left_out'].values()):,} left out ({why})"
    assert line == f"{data}: {read:,} rows read: {', '.join(parts)}, {left_out}"
    assert rows["left_out"]["repeated rows"] == 9
    assert rows["left_out"]["rows whose two sides are the same text"] == 1
    for name in ("report.md", "report.html"):
        assert "left out: 9 repeated rows" in (tmp_path / "model.fit" / name).read_text("utf-8")
