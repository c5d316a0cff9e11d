"""Languages: sentences written for the purpose, texts in no language, and real sentences if the data are present."""

import gzip
import random
import re
import string
import unicodedata
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentloom.data.hygiene.languages import (
    NAMES,
    SAMPLED,
    language_name,
    language_shares,
    main_language,
    recognised,
    shares_in_words,
    text_languages,
)
from tests.paths import DATA

PARALLEL = DATA / "parallel"
SAMPLES = {
    "en": ["The shop is closed on Sunday.", "She said that her brother was at home.", "How do I reset it?"],
    "de": ["Der Laden ist am Sonntag geschlossen.", "Sie sagte, dass ihr Bruder nicht zu Hause war."],
    "fr": ["Le magasin est fermé le dimanche.", "Elle a dit que son frère était dans la maison."],
    "es": ["La tienda está cerrada los domingos.", "Dijo que su hermano no estaba en la casa."],
    "pt": ["A loja não abre aos domingos.", "Ela disse que o seu irmão não estava em casa com os filhos."],
    "it": ["Il negozio è chiuso la domenica.", "Ha detto che suo fratello non era nella casa con gli amici."],
    "nl": ["De winkel is op zondag niet open.", "Ze zei dat haar broer met het kind naar huis ging."],
    "sv": ["Affären är inte öppen på söndagar.", "Hon sa att det var en vän som skulle komma till honom."],
    "da": ["Butikken er ikke åben af hensyn til ferien.", "Hun spurgte, hvad der blev sagt efter mødet."],
    "no": ["Butikken er ikke åpen av hensyn til ferien.", "Hun spurte hva som ble sagt etter møtet."],
    "fi": ["Kauppa on kiinni ja se ei ole auki.", "Hän sanoi, että hänen veljensä oli kotona, mutta ei nyt."],
    "pl": ["Sklep nie jest otwarty w niedzielę.", "Powiedziała, że jego brat był już w domu, ale się spóźnił."],
    "cs": ["Obchod je v neděli zavřený.", "Řekla, že jeho bratr byl doma, ale jen když se nic nedělo."],
    "tr": ["Dükkan pazar günü açık değil.", "Kardeşi için çok güzel bir hediye ve bu kitap var dedi."],
    "ro": ["Magazinul nu este deschis pentru că este duminică.", "A spus că fratele ei nu era în casă și că a fost."],
    "hu": ["Az üzlet vasárnap nem tart nyitva.", "Azt mondta, hogy a bátyja még nem volt otthon, és ez már baj."],
    "id": ["Toko itu tidak buka pada hari Minggu.", "Dia berkata bahwa kakaknya sudah ada di rumah dengan orang itu."],
    "ru": ["Магазин не работает по воскресеньям.", "Она сказала, что он уже был дома, но это не так."],
    "uk": ["Магазин не працює у неділю.", "Вона сказала, що він вже був удома, але це не так."],
    "bg": ["Магазинът не работи в неделя.", "Тя каза, че той вече е бил вкъщи, но това не са те."],
    "ar": ["المتجر مغلق في يوم الأحد.", "قالت إن أخاها كان في البيت مع هذا الرجل."],
    "fa": ["این فروشگاه روز جمعه باز نیست.", "او گفت که برادرش در خانه بود و این را از ما خواست."],
    "el": ["Το κατάστημα είναι κλειστό."],
    "he": ["החנות סגורה בשבת."],
    "hi": ["दुकान रविवार को बंद रहती है।"],
    "th": ["ร้านปิดวันอาทิตย์"],
    "ko": ["가게는 일요일에 문을 닫습니다."],
    "ja": ["店は日曜日に閉まっています。"],
    "zh": ["商店星期天不开门。", "她说她哥哥在家。"],
}


@pytest.mark.parametrize(("code", "texts"), SAMPLES.items())
def test_a_few_sentences_are_enough(code: str, texts: list[str]) -> None:
    assert main_language(language_shares(texts)) == code


def test_every_language_has_a_name_and_a_sample() -> None:
    assert set(NAMES) - {"und"} == set(SAMPLES)
    assert language_name("de") == "German"
    assert language_name(None) == "an unrecognised language"


def random_letters(count: int) -> list[str]:
    draw = random.Random(1)
    return [
        " ".join("".join(draw.choices(string.ascii_lowercase, k=draw.randint(3, 9))) for _ in range(8))
        for _ in range(count)
    ]


@pytest.mark.parametrize(
    "texts",
    [
        [],
        [""],
        ["12 34", "..."],
        random_letters(200),
        [f"INV-{number} SKU{number}X QTY" for number in range(200)],
        ["torch nn Module", "numpy ndarray reshape", "pandas DataFrame merge"],
        ["The shop is closed.", "Магазин закрыт.", "商店关门了。"],  # no script has more than half
    ],
)
def test_texts_in_no_language_or_in_several_have_no_main_language(texts: list[str]) -> None:
    assert main_language(language_shares(texts)) is None


def test_nearly_all_recognised_texts_decide() -> None:
    assert main_language(language_shares(SAMPLES["de"] * 10 + SAMPLES["en"][:1])) == "de"
    assert main_language(language_shares(["Windows 11"] + SAMPLES["ru"])) == "ru"


def test_decomposed_letters_count_as_composed_ones() -> None:
    assert main_language(language_shares([unicodedata.normalize("NFD", text) for text in SAMPLES["cs"]])) == "cs"


def test_a_long_list_is_sampled_evenly() -> None:
    german, english = SAMPLES["de"][0], SAMPLES["en"][0]
    shares = language_shares([english] * SAMPLED + [german] * 3 * SAMPLED)
    assert shares == pytest.approx({"de": 0.75, "en": 0.25}, abs=0.01)


@pytest.mark.skipif(not PARALLEL.is_dir(), reason="no parallel data beside the repository")
@pytest.mark.long
def test_blocks_of_a_hundred_real_sentences() -> None:
    correct = []
    for file in sorted(PARALLEL.glob("*.gz")):
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            rows = [line.rstrip("\n").split("\t") for line in islice(lines, 1, 1501)]
        for side, code in enumerate(file.name.split(".")[1].split("-")):
            texts = [row[side] for row in rows]
            blocks = [texts[start : start + 100] for start in range(0, len(texts) - 99, 100)]
            correct += [main_language(language_shares(block)) == code for block in blocks]
    assert sum(correct) / len(correct) > 0.97  # Tatoeba begins with blocks such as "Go.", "Hi.", "Run!"


MESSAGES = {
    "en": [
        "How do I reset my password?", "The app crashes when I open the camera.", "Where is my order?", "Please cancel it.",
        "I was charged twice for the same item.", "Can you send me the invoice again?", "My card has not arrived yet.",
        "It says that the code is wrong.", "What are the fees for a transfer?", "The payment was declined at the shop.",
        "How long does it take to get a refund?", "Is there a way to change my address?", "Thanks for the quick help!",
    ],
    "de": [
        "Wie kann ich mein Passwort zurücksetzen?", "Die App stürzt ab, wenn ich sie öffne.", "Wo ist meine Bestellung?",
        "Ich wurde zweimal belastet und das ist nicht richtig.",
    ],
    "pl": ["Jak mogę zmienić hasło?", "Aplikacja nie działa od wczoraj.", "Gdzie jest moje zamówienie?"],
    "sv": ["Hur byter jag lösenord?", "Appen är inte tillgänglig på min telefon.", "Var är min beställning?"],
}  # fmt: skip


def mixed_messages(parts: dict[str, int]) -> list[str]:
    """Messages of each language, numbered, in random order."""
    texts = [f"{MESSAGES[code][k % len(MESSAGES[code])]} {k}" for code, count in parts.items() for k in range(count)]
    random.Random(1).shuffle(texts)
    return texts


def test_a_mixed_file_is_reported_with_its_shares() -> None:
    # of 2,261 customer messages, 782 in three other languages
    shares = language_shares(mixed_messages({"en": 1479, "de": 400, "pl": 250, "sv": 132}))
    assert list(recognised(shares)) == ["en", "de", "pl", "sv"]
    expected = {"en": 1479 / 2261, "de": 400 / 2261, "pl": 250 / 2261, "sv": 132 / 2261}
    assert all(abs(shares[code] - share) < 0.06 for code, share in expected.items())
    assert main_language(shares) is None
    assert re.fullmatch(r"English \d\d%, German \d\d%, Polish \d\d%, Swedish \d%", shares_in_words(shares))


def test_rows_that_are_not_recognised_are_a_share_of_their_own() -> None:
    polish, swedish = "Czy to jest dla mnie, bardzo proszę?", "Jag har inte fått det än, vad ska jag göra?"
    shares = language_shares([*["INV-3 SKU3X QTY"] * 50, *[polish] * 30, *[swedish] * 20])
    assert shares == pytest.approx({"pl": 0.3, "sv": 0.2, "und": 0.5})
    assert main_language(shares) is None
    assert shares_in_words(shares) == "Polish 30%, Swedish 20%, not recognised 50%"
    assert main_language(language_shares([*["INV-3 SKU3X QTY"] * 50, *[polish] * 50])) == "pl"


@pytest.mark.parametrize("code", MESSAGES)
def test_messages_of_one_language_are_not_mixed(code: str) -> None:
    shares = language_shares(mixed_messages({code: 200}))
    assert main_language(shares) == code
    assert shares_in_words(shares) == NAMES[code]


@pytest.mark.parametrize(("code", "texts"), SAMPLES.items())
def test_shares_of_a_few_sentences(code: str, texts: list[str]) -> None:
    assert main_language(language_shares(texts * 20)) == code


def test_a_few_foreign_sentences_do_not_make_a_file_mixed() -> None:
    shares = language_shares(mixed_messages({"en": 95, "de": 5}))
    assert set(recognised(shares)) == {"en", "de"}  # they show in the shares all the same
    assert main_language(shares) == "en"


def test_scripts_are_distinguished_text_by_text() -> None:
    texts = SAMPLES["ru"] * 30 + SAMPLES["zh"] * 20 + SAMPLES["ko"] * 50 + MESSAGES["en"] * 5
    assert set(recognised(language_shares(texts))) == {"ru", "zh", "ko", "en"}


def test_no_language_at_all() -> None:
    assert language_shares([]) == {}
    assert language_shares(["12 34", "..."]) == {}
    assert shares_in_words({}) == "an unrecognised language"


@given(st.lists(st.text(max_size=40), max_size=20))
def test_shares_are_shares(texts: list[str]) -> None:
    shares = language_shares(texts)
    assert all(0 < share <= 1 for share in shares.values())
    assert sum(shares.values()) <= 1 + 1e-9


@pytest.mark.skipif(not PARALLEL.is_dir(), reason="the data are not here")
def test_shares_of_real_sentences() -> None:
    def column(name: str, at: int, count: int) -> list[str]:
        with gzip.open(PARALLEL / name, "rt", encoding="utf-8") as file:
            return [line.rstrip("\n").split("\t")[at] for line in islice(file, 5000, 5000 + count)]

    parts = {
        "en": column("multi30k.en-fr.train.tsv.gz", 0, 1300),
        "de": column("tatoeba.en-de.tsv.gz", 1, 400),
        "cs": column("multi30k.en-cs.train.tsv.gz", 1, 300),
    }
    shares = language_shares([text for texts in parts.values() for text in texts])
    known = recognised(shares)
    assert known.keys() == parts.keys()
    assert all(abs(known[code] / sum(known.values()) - len(texts) / 2000) < 0.05 for code, texts in parts.items())


def test_each_text_by_itself_among_the_languages_that_there_are():
    mixed = [*SAMPLES["en"], "12345", *SAMPLES["de"] * 2]
    assert text_languages(mixed) == ["en"] * 3 + [None] + ["de"] * 4
    assert text_languages(["12", "--"]) == [None, None]
    assert text_languages([]) == []
