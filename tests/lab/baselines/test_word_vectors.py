"""Means of word vectors computed by hand; files in every format; broken files located by line."""

import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentloom.errors import DataError, InputError
from sentloom.lab.baselines.words import WordVectors, of_distinct

GLOVE = "the 1 0 0\ncat 0 2 0\nCat 0 0 4\n. 8 8 8\n"


@pytest.fixture
def glove(tmp_path):
    path = tmp_path / "glove.txt"
    path.write_text(GLOVE)
    return path


def test_means_by_hand(glove):
    vectors = WordVectors.load(glove).encode(["the cat", "The Cat.", "dog", "", "the the dog cat"])
    assert vectors.dtype == np.float32
    assert vectors.tolist() == [
        [0.5, 1, 0],
        np.float32([3, 8 / 3, 4]).tolist(),  # "The" is only known in lower case
        [0, 0, 0],
        [0, 0, 0],
        np.float32([2 / 3, 2 / 3, 0]).tolist(),
    ]


def test_punctuation_is_split_off(glove):
    assert WordVectors.load(glove).encode(["cat.", "cat ."]).tolist() == [[4, 5, 4], [4, 5, 4]]


@pytest.mark.parametrize("header", ["", "4 3\n"])
@pytest.mark.parametrize("ending", [".txt", ".txt.gz"])
@pytest.mark.parametrize("space", ["\n", " \n", "\r\n"])
def test_every_file_format_gives_the_same_vectors(tmp_path, glove, header, ending, space):
    path = tmp_path / f"vectors{ending}"
    content = (header + GLOVE).replace("\n", space).encode()
    path.write_bytes(gzip.compress(content) if ending.endswith("gz") else content)
    expected, words = WordVectors.load(glove), WordVectors.load(path)
    assert words.rows == expected.rows
    assert np.array_equal(words.vectors, expected.vectors)
    assert words.fingerprint() == expected.fingerprint()


def test_words_with_spaces_and_repeated_words(tmp_path):
    path = tmp_path / "odd.txt"
    path.write_text(", 1 2\n. . . 3 4\n, 5 6\n\u00a0 7 8\n\n")
    words = WordVectors.load(path)
    assert {word: words.vectors[row].tolist() for word, row in words.rows.items()} == {
        ",": [1, 2],
        ". . .": [3, 4],
        "\u00a0": [7, 8],
    }


def test_more_words_than_the_initial_capacity(tmp_path):
    path = tmp_path / "many.txt"
    path.write_text("".join(f"w{number} {number} {number}.5\n" for number in range(11)))
    words = WordVectors.load(path, capacity=2)
    assert words.vectors.tolist() == [[number, number + 0.5] for number in range(11)]


@pytest.mark.parametrize(
    ("content", "line", "problem"),
    [
        ("the 1 2\ncat 1\n", 2, "2 fields"),
        ("the 1 2\ncat 1 2 3\n", 2, "more than 2 numbers"),
        ("the 1 2\n\ncat 1 x\n", 3, "could not convert"),
        ("the 1 2\ncat 1 nan\n", 2, "NaN"),
        ("the 1 2\ncat 1 1e99\n", 2, "infinity"),
        ("2 2\nthe 1 2\n", 2, "the file ends after 1 words"),
        ("word\n", 1, "1 fields"),
        ("", 0, "the file ends after 0 words"),
    ],
)
def test_errors_name_the_broken_line(tmp_path, content, line, problem):
    path = tmp_path / "broken.txt"
    path.write_text(content)
    with pytest.raises(DataError, match=rf"broken.txt, line {line}: .*{problem}"):
        WordVectors.load(path)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        WordVectors.load(tmp_path / "absent.txt")
    (tmp_path / "latin.txt").write_bytes("caf\xe9 1 2\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"line 1.*UTF-8"):
        WordVectors.load(tmp_path / "latin.txt")
    whole = gzip.compress(np.random.default_rng(0).bytes(5000).hex().encode() + b" 1\n")
    (tmp_path / "half.txt.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="damage"):
        WordVectors.load(tmp_path / "half.txt.gz")


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "any.txt"
    path.write_bytes(content)
    try:
        words = WordVectors.load(path)
    except DataError:
        return
    assert np.isfinite(words.vectors).all()
    assert len(words.vectors) == len(words.rows)


def test_items_that_are_not_strings_are_refused(glove):
    words = WordVectors.load(glove)
    with pytest.raises(InputError, match="item 1"):
        words.encode(["the", None])


def test_each_distinct_text_is_encoded_once_and_a_single_text_gives_one_vector():
    asked = []

    def encode(texts):
        asked.extend(texts)
        return np.array([[len(text), 1.0] for text in texts], np.float32)

    assert of_distinct(["bb", "a", "bb"], encode).tolist() == [[2, 1], [1, 1], [2, 1]]
    assert asked == ["bb", "a"]
    assert of_distinct("ccc", encode).tolist() == [3, 1]
    with pytest.raises(InputError, match="item 1: found int 3"):
        of_distinct(["a", 3], encode)
