import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentloom.writing.views.pairs import ViewCache, find, make_missing


class Upper:
    """A maker that records the texts it is asked for."""

    identity, shard = "upper", 4

    def __init__(self, stop_after=None):
        self.asked, self.stop_after = [], stop_after

    def views(self, texts):
        for text in texts:
            if len(self.asked) == self.stop_after:
                raise KeyboardInterrupt
            self.asked.append(text)
            yield text.upper()


def column(texts, chunk=3):
    return pa.chunked_array([texts[i : i + chunk] for i in range(0, len(texts), chunk)], type=pa.large_string())


def test_cached_views_are_not_made_again(tmp_path):
    texts = [f"text {number}" for number in range(10)]
    first, second = Upper(), Upper()
    make_missing(first, column(texts[:7]), ViewCache(tmp_path, "upper"), "")
    make_missing(second, column(texts), ViewCache(tmp_path, "upper"), "")
    assert (first.asked, second.asked) == (texts[:7], texts[7:])
    table = ViewCache(tmp_path, "upper").table()
    assert dict(zip(*(table.column(name).to_pylist() for name in ("text", "view")), strict=True)) == {
        text: text.upper() for text in texts
    }
    assert len(ViewCache(tmp_path, "another").table()) == 0


def test_an_interruption_loses_at_most_one_shard(tmp_path):
    texts = [f"text {number}" for number in range(20)]
    with pytest.raises(KeyboardInterrupt):
        make_missing(Upper(stop_after=10), column(texts), ViewCache(tmp_path, "upper"), "")
    again = Upper()
    make_missing(again, column(texts), ViewCache(tmp_path, "upper"), "")
    assert again.asked == texts[8:]  # two shards of four were complete


def test_a_half_written_file_is_not_read(tmp_path):
    cache = ViewCache(tmp_path, "upper")
    cache.add(["a"], ["A"])
    (cache.folder / ".0123.abc.arrow").write_bytes(b"half")
    assert cache.table().to_pylist() == [{"text": "a", "view": "A"}]


def test_the_views_of_a_damaged_shard_are_made_again_and_reported(tmp_path, capsys):
    cache, texts = ViewCache(tmp_path, "upper"), ["a", "b"]
    cache.add(texts[:1], ["A"])
    (shard,) = cache.folder.iterdir()
    content = bytearray(shard.read_bytes())
    content[content.rindex(b"A\0")] ^= 1  # still valid text
    shard.write_bytes(content)
    maker = Upper()
    make_missing(maker, column(texts), cache, "")
    assert maker.asked == texts
    assert sorted(cache.table().column("view").to_pylist()) == ["A", "B"]
    assert f"{shard.name} is damaged" in capsys.readouterr().err


@given(st.lists(st.text(max_size=2), max_size=12), st.lists(st.text(max_size=2), max_size=12))
def test_find_is_index(known, texts):
    rows = find(column(known), column(texts))
    assert rows.tolist() == [known.index(text) if text in known else -1 for text in texts]
