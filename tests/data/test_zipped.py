"""Twin files in a zip file are read like the unpacked files, and errors never give a traceback."""

import gzip
import tracemalloc
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentloom.data import read
from sentloom.data.inputs import twins_in_zip
from sentloom.data.limits import Allowance
from sentloom.data.shapes import Shape
from sentloom.errors import DataError, InputError, SentloomError

ENGLISH, GERMAN = b"A dog.\nTwo cats.\n\nThe end.\n", b"Ein Hund.\nZwei Katzen.\n\nDas Ende.\n"
OPUS = {
    "README": b"A corpus\n",
    "LICENSE": b"Free\n",
    "Books.de-en.en": ENGLISH,
    "Books.de-en.de": GERMAN,
    "Books.de-en.xml": b"<cesAlign/>\n",
}


TEXTS = [["A dog.", "Two cats.", "The end."], ["Ein Hund.", "Zwei Katzen.", "Das Ende."]]


def pack(path: Path, files: dict[str, bytes], how: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", how) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def rows(data) -> list[tuple[str, str]]:
    return list(zip(data.column("source").to_pylist(), data.column("target").to_pylist(), strict=True))


def test_an_opus_download_equals_its_unpacked_files(tmp_path) -> None:
    for name, content in OPUS.items():
        (tmp_path / name).write_bytes(content)
    plain = read(f"{tmp_path}/Books.de-en.de+{tmp_path}/Books.de-en.en")
    data = read(pack(tmp_path / "de-en.txt.zip", OPUS))
    assert data.shape is Shape.PARALLEL
    assert (
        rows(data) == rows(plain) == [("Ein Hund.", "A dog."), ("Zwei Katzen.", "Two cats."), ("Das Ende.", "The end.")]
    )
    assert (data.sha256, data.skipped) == (plain.sha256, plain.skipped)
    assert data.place(2) == f"{tmp_path}/de-en.txt.zip/Books.de-en.de+Books.de-en.en, line 4"
    turned = read(tmp_path / "de-en.txt.zip", columns={"source": "target", "target": "source"})
    assert rows(turned) == [(english, german) for german, english in rows(data)]


@pytest.mark.parametrize(
    ("names", "source"),
    [
        (("c.en", "c.de"), "c.en"),  # without languages in the name, the order of the zip file counts
        (("c.de", "c.en"), "c.de"),
        (("d/c.en-pt_br.pt_br", "d/c.en-pt_br.en"), "d/c.en-pt_br.en"),
        (("__MACOSX/._c.en", "__MACOSX/._c.de", "c.de", "c.en", "README.md", "README.txt"), "c.de"),
    ],
)
@pytest.mark.parametrize("how", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_which_files_are_used_and_which_is_the_source(tmp_path, names, source, how) -> None:
    data = read(pack(tmp_path / "c.ZIP", {name: f"{name}\n".encode() for name in names}, how))
    assert data.column("source").to_pylist() == [source]
    assert data.column("target").to_pylist()[0] in names


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "the zip file is empty"),
        ({"README": b"", "a.tsv": b"source\ttarget\na\tb\n"}, "no pair of files, only README, a.tsv"),
        ({"a.en": b"a", "a.de": b"b", "a.fr": b"c"}, "no pair of files, only a.en, a.de, a.fr"),
        ({"a.en": b"a", "a.de": b"b", "b.en": b"a", "b.de": b"b"}, "a.en with a.de and b.en with b.de"),
    ],
)
def test_no_twins_or_several_are_refused(tmp_path, files, message) -> None:
    with pytest.raises(InputError, match=message):
        read(pack(tmp_path / "c.zip", files))


def test_a_zip_bomb_is_refused_by_its_declared_size(tmp_path, monkeypatch) -> None:
    path = pack(tmp_path / "c.zip", {"c.en": b"a\n", "c.de": b"a\n" * 1_000_000})
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda *_: pytest.fail("it was unpacked"))
    with pytest.raises(InputError, match=r"[\d,]+ bytes of c\.de unpack to 2,000,000"):
        twins_in_zip(path, free_unpacked=1000)


def test_a_gzip_bomb_is_refused_by_its_declared_size(tmp_path, monkeypatch) -> None:
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"a\n" * 1_000_000))
    monkeypatch.setattr(gzip.GzipFile, "read", lambda *_: pytest.fail("it was unpacked"))
    with pytest.raises(DataError, match=r"unpack to 2,000,000 bytes"):
        read(tmp_path / "a.txt.gz", allow=Allowance(free_unpacked=1000))


def test_problems_name_the_member(tmp_path) -> None:
    with pytest.raises(DataError, match=r"c\.zip/c\.de, line 2: invalid byte 0xFF"):
        read(pack(tmp_path / "c.zip", {"c.en": b"a\nb\n", "c.de": b"a\n\xff\n"}))
    with pytest.raises(DataError, match=r"1 lines in .*c\.en but 2 lines in .*c\.de"):
        read(pack(tmp_path / "c.zip", {"c.en": b"a\n", "c.de": b"a\nb\n"}))


def test_files_that_cannot_be_unzipped_are_refused(tmp_path) -> None:
    path = tmp_path / "c.zip"
    with pytest.raises(InputError, match="no such file"):
        read(path)
    path.write_bytes(b"no zip file")
    with pytest.raises(InputError, match="the zip file cannot be read"):
        read(path)
    with pytest.raises(InputError, match="rare compression"):
        read(pack(path, OPUS, zipfile.ZIP_LZMA))
    whole = pack(path, OPUS, zipfile.ZIP_STORED).read_bytes()
    path.write_bytes(whole.replace(b"Zwei", b"Drei"))
    with pytest.raises(DataError, match="damaged"):
        read(path)


@given(st.integers(0, 10**6), st.integers(1, 255), st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))
def test_any_changed_byte_is_read_or_refused(tmp_path_factory, place, change, how) -> None:
    path = pack(tmp_path_factory.mktemp("zip") / "c.zip", OPUS, how)
    content = bytearray(path.read_bytes())
    content[place % len(content)] ^= change
    path.write_bytes(content)
    try:
        pairs = rows(read(path))
    except SentloomError as error:
        assert str(path) in str(error)  # noqa: PT017
    else:  # a byte without effect, as in a date, or one that renames a member
        assert sorted(map(sorted, pairs)) == sorted(map(sorted, zip(*TEXTS, strict=True)))


def test_memory_does_not_grow_with_the_files(tmp_path) -> None:
    line = b"One sentence that is no longer than it has to be, again and again and again.\n"
    pack(tmp_path / "c.zip", {"c.en": line * 100_000, "c.de": line * 100_000})
    tracemalloc.start()
    try:
        assert len(read(tmp_path / "c.zip")) == 100_000
        assert tracemalloc.get_traced_memory()[1] < 8_000_000  # of 15 million bytes
    finally:
        tracemalloc.stop()
