"""A fit says which languages its base was made for, and warns if the texts are in others."""

import json
from itertools import product
from pathlib import Path

import pytest

GERMAN = (
    ("Wie kann ich", "Warum darf ich nicht", "Wann muss ich", "Wo soll ich"),
    ("die Rechnung", "den Vertrag", "das Passwort", "die Adresse", "den Termin", "die Lieferung"),
    ("ändern", "kündigen", "bezahlen", "verschieben", "bestätigen"),
    "{0} {1} heute noch {2}?",
    "Um {1} zu {2}, öffnen Sie bitte die Einstellungen und wählen Sie dort den passenden Punkt aus.",
)
ENGLISH = (
    ("How can I", "Why may I not", "When do I have to", "Where should I"),
    ("the invoice", "the contract", "the password", "the address", "the appointment", "the delivery"),
    ("change", "cancel", "pay for", "postpone", "confirm"),
    "{0} still {2} {1} today?",
    "To {2} {1}, please open the settings of your account and choose the right item there.",
)
WARNING = "The training texts are in German, and the base {} was made for English."


def pairs(path, language):
    *words, question, answer = language
    rows = [f"{question}\t{answer} ({number})\n".format(*some) for number, some in enumerate(product(*words))]
    path.write_text("anchor\tpositive\n" + "".join(rows), "utf-8")
    return path


@pytest.fixture
def fit(sentloom, tmp_path):
    """A function that fits a base to questions and answers in a language: the output, and the text of every report."""

    def run(language, base):
        model = tmp_path / "model"
        data = pairs(tmp_path / "faq.tsv", language)
        done = sentloom("fit", data, "-o", model, "--base", base, "--budget", "4steps", "--force")
        assert done.returncode in (0, 3), done.stderr
        report = tmp_path / "model.fit/report"
        texts = {name: report.with_suffix(f".{name}").read_text("utf-8") for name in ("md", "html", "json")}
        return done.stdout + done.stderr, texts | {"card": (model / "README.md").read_text("utf-8")}

    return run


@pytest.fixture
def small(sentloom, tmp_path):
    """A function that makes a small base, with a card of this header or without one."""

    def make(card):
        folder = tmp_path / "small"
        size = ("--layers", 1, "--width", 32, "--vocabulary", 300, "--max-length", 32)
        assert sentloom("lab", "init-model", pairs(tmp_path / "some.tsv", GERMAN), "-o", folder, *size).returncode == 0
        if card:
            (folder / "README.md").write_text(f"---\n{card}\nlicense: mit\n---\n# A model\n", "utf-8")
        return folder

    return make


def summary(texts):
    (base,) = json.loads(texts["json"])["bases"]
    return base["languages"], base["made_for"]


def assert_warned(base, output, texts):
    card = texts["card"].replace("\\", "")
    assert WARNING.format(Path(base).name) in card  # which has no folders of this machine
    for text in (output, texts["md"].replace("\\", ""), texts["html"]):
        assert WARNING.format(base) in text
    for text in (output, texts["md"], texts["html"], card):
        assert "Languages that the base was made for: English." in text
    assert any(line.startswith(WARNING.format(base)) for line in json.loads(texts["json"])["warnings"])
    assert summary(texts) == (["en"], "English")
    assert "language:\n- de\n- en\n" in texts["card"]  # of the texts and of the base


@pytest.mark.long
def test_german_texts_and_the_embedded_base(fit):
    assert_warned("embedded", *fit(GERMAN, "embedded"))


@pytest.mark.parametrize(
    ("card", "language", "words"),
    [
        ("language: en", ENGLISH, "English"),
        ("language: [de]", GERMAN, "German"),
        pytest.param("language:\n- multilingual\n- en", GERMAN, "multilingual, English", marks=pytest.mark.long),
    ],
)
def test_no_warning_for_languages_of_the_card(fit, small, card, language, words):
    output, texts = fit(language, small(card))
    assert f"Languages that the base was made for: {words}." in texts["md"]
    assert all("The training texts are in" not in text for text in (output, *texts.values()))


def test_other_languages_than_those_of_the_card(fit, small):
    folder = small("language: en-US")
    assert_warned(folder, *fit(GERMAN, folder))


@pytest.mark.parametrize("card", [None, pytest.param("language: {", marks=pytest.mark.long)])
def test_without_a_card_the_vocabulary_is_measured(fit, small, card):
    output, texts = fit(GERMAN, small(card))
    codes, words = summary(texts)
    assert codes == []
    assert words.startswith("unknown: its vocabulary splits words of the training texts into ")
    assert words in output
    assert all("The training texts are in" not in text for text in (output, *texts.values()))
