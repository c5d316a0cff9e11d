"""Other encodings and other formats are recognised by their bytes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentloom.data import read
from sentloom.data.encodings import is_western
from sentloom.data.limits import CLEANING, STRICT
from sentloom.data.scan import as_utf8, mark_of
from sentloom.errors import DataError, InputError
from tests.data.reading import put


@pytest.mark.parametrize(
    ("start", "message", "advice"),
    [
        (b"PK\x03\x04\x14\x00", "a spreadsheet", "Rename the file to end in .xlsx"),
        (b"\xd0\xcf\x11\xe0\xa1", "an old spreadsheet", "Rename the file to end in .xls"),
        (b"\x1f\x8b\x08", "gzip data", "Rename the file to end in .gz"),
    ],
)
@pytest.mark.parametrize("name", ["a.csv", "a.txt", "a.jsonl"])
def test_other_formats_with_a_text_extension_are_recognised(start, message, advice, name, tmp_path) -> None:
    path = put(tmp_path / name, start + bytes(range(256)))
    for allow in (STRICT, CLEANING):
        with pytest.raises(DataError) as caught:
            read(path, allow=allow)
        assert message in str(caught.value)
        assert advice in str(caught.value)


def test_cleaning_repairs_encodings_nul_and_commas(tmp_path) -> None:
    path = put(tmp_path / "a.txt", "Schön\n".encode() + b"Sch\xf6n \x96 gut\na\0b\n")
    assert read(path, allow=CLEANING).column("text").to_pylist() == ["Schön", "Schön – gut", "ab"]
    polish = put(tmp_path / "b.txt", b"one\ntwo\n" + "żółta łódź płynie\n".encode("cp1250"))
    assert read(polish, allow=CLEANING).column("text").to_pylist() == ["one", "two"]
    wide = put(tmp_path / "c.txt", "größer\nkleiner\n".encode("utf-16"))
    assert read(wide, allow=CLEANING).column("text").to_pylist() == ["größer", "kleiner"]
    commas = put(tmp_path / "d.jsonl", "".join(json.dumps({"text": word}) + ",\n" for word in "ab"))
    assert read(commas, allow=CLEANING).column("text").to_pylist() == ["a", "b"]


@pytest.mark.parametrize(
    ("start", "name"),
    [
        (b"\xff\xfea\x00", "UTF-16"),
        (b"\xfe\xff\x00a", "UTF-16"),
        (b"\xff\xfe\x00\x00", "UTF-32"),
        (b"\xef\xbb\xbfa", None),
    ],
)
def test_byte_order_marks_name_the_encoding(start, name) -> None:
    assert mark_of(start) == name


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_wide_characters_without_a_mark_are_recognised(encoding, tmp_path) -> None:
    path = put(tmp_path / "a.csv", 'question,answer\n"Wo, größer?",hier\n'.encode(encoding))
    data = read(path)
    assert data[0] == {"anchor": "Wo, größer?", "positive": "hier"}
    assert f"read as {encoding.upper()}" in data.notes[0]
    page = put(tmp_path / "a.md", "# Größe\n\nWie groß das ist, steht hier.\n".encode(encoding))
    assert read(page, keep=["*"])[0]["title"] == "Größe"


@pytest.mark.parametrize(
    ("line", "western"),
    [
        ("naïve café".encode("cp1252"), True),
        ("żółta łódź".encode(), True),  # it is UTF-8, so it is not judged
        ("żółta łódź".encode("cp1250"), False),
        ("καλημέρα".encode("cp1253"), False),
        (b"a\x81b", False),  # undefined in Windows-1252
    ],
)
def test_lines_are_western_if_they_are_plausible_in_windows_1252(line, western) -> None:
    assert is_western([b"plain", line]) == western


@given(st.text(max_size=20), st.integers(1, 5))
def test_conversion_does_not_depend_on_block_boundaries(text, size) -> None:
    raw = text.encode("utf-16")
    assert b"".join(as_utf8([raw[at : at + size] for at in range(0, len(raw), size)], "utf-16")) == text.encode()


RUSSIAN = "Как сбросить пароль?,Откройте настройки и выберите новый пароль.\n"


@pytest.mark.parametrize(
    ("encoding", "name", "text"),
    [
        ("cp1252", "Windows-1252", "Grüße aus Köln,Straße und Maß\n"),
        ("cp1251", "cp1251", RUSSIAN),
        ("shift_jis", "cp932", "パスワードを忘れました,設定を開いて新しいものを選んでください\n"),
    ],
)
def test_encodings_are_detected_and_said(encoding, name, text, tmp_path) -> None:
    path = put(tmp_path / "a.csv", ("question,answer\n" + text * 20).encode(encoding))
    data = read(path)
    assert data["answer"][0] == text.strip().split(",")[1]
    assert len(data) == 20
    assert [note for note in data.notes if f"read as {name}" in note]


def test_an_encoding_that_is_asked_for_decides(tmp_path) -> None:
    path = put(tmp_path / "a.txt", "größer\n".encode("cp437"))
    assert read(path, encoding="cp437")["text"] == ["größer"]
    with pytest.raises(DataError, match="the file is not in shift_jis: byte 0x"):
        read(put(tmp_path / "b.txt", b"\x81\xff\n"), encoding="shift_jis")
    with pytest.raises(InputError, match="'ebcdic' is no encoding"):
        read(path, encoding="ebcdic")


def test_too_little_evidence_is_refused_with_the_option(tmp_path) -> None:
    with pytest.raises(DataError, match="--encoding"):
        read(put(tmp_path / "a.txt", "żółta łódź\n".encode("cp1250")))
