"""WordNet from its own files (index.noun, data.noun ...): Debian's, or those that nltk has fetched."""

import hashlib
import os
import sys
from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from pathlib import Path

from sentloom.errors import MissingPart
from sentloom.files import sha256

PARTS = ("noun", "verb", "adj", "adv")
FILES = (*(f"{kind}.{part}" for kind in ("index", "data") for part in PARTS), "verb.exc")
DEBIAN = Path("/usr/share/wordnet")


def find_wordnet() -> Path:
    """The folder of WordNet's files: in NLTK_DATA, of Debian's package, or where nltk puts its data."""
    for folder in _candidates():
        if all((folder / name).is_file() for name in FILES):
            return folder
    raise MissingPart(
        "synonyms",
        f"no WordNet ({DEBIAN} and the corpora/wordnet folders of nltk were looked at)",
        f"a folder with {', '.join(FILES)}",
        "apt-get install wordnet-base; or fetch nltk's corpus wordnet, unzip it, and set NLTK_DATA if it is elsewhere",
    )


def _candidates() -> Iterator[Path]:
    for named in filter(None, os.environ.get("NLTK_DATA", "").split(os.pathsep)):
        yield from sorted(Path(named).glob("corpora/wordnet*"))
    yield DEBIAN
    prefix = Path(sys.prefix)
    usual = [Path.home(), prefix, prefix / "share", prefix / "lib", *map(Path, ("/usr/share", "/usr/local/share"))]
    for place in [*usual, *map(Path, ("/usr/lib", "/usr/local/lib"))]:
        yield from sorted(place.glob("nltk_data/corpora/wordnet*"))


class WordNet:
    """Words and their synonyms. The indexes lie in memory; synsets are read where they stand in the data files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._data = {part: (folder / f"data.{part}").read_bytes() for part in PARTS}
        self.synonyms = lru_cache(maxsize=1 << 16)(self._synonyms)

    @cached_property
    def sha256(self) -> str:
        """Of all files that synonyms come from."""
        return hashlib.sha256(" ".join(sha256(self.folder / name) for name in FILES).encode()).hexdigest()

    @cached_property
    def index(self) -> Mapping[str, Mapping[str, tuple[int, int, int]]]:
        """Part of speech -> word -> (senses met in tagged text, senses, place of the most frequent one)."""
        return {part: dict(_index(self.folder / f"index.{part}")) for part in PARTS}

    @cached_property
    def irregular_verbs(self) -> frozenset[str]:
        """Verbs with a form that is not made by adding an ending alone; lines are: form verb..."""
        lines = (self.folder / "verb.exc").read_text(encoding="utf-8").splitlines()
        return frozenset(verb for line in lines for verb in line.split()[1:])

    def _synonyms(self, part: str, word: str) -> tuple[str, ...]:
        """The other words of a word's most frequent sense."""
        place = self.index[part][word][2]
        words = _words(self._data[part][place : self._data[part].index(b"\n", place)].decode())
        return tuple(other for other in words if other.lower() != word)


def _index(path: Path) -> Iterator[tuple[str, tuple[int, int, int]]]:
    """Lines: lemma pos senses pointers symbol... senses tagged offset...; those of the licence start with spaces."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            if not line.startswith(" "):
                cells = line.split()
                rest = cells[4 + int(cells[3]) :]
                yield cells[0].replace("_", " "), (int(rest[1]), int(rest[0]), int(rest[2]))


def _words(line: str) -> list[str]:
    """The words of a synset: offset file type count(hex) word id ...; adjectives may have a mark: galore(ip)."""
    cells = line.split(" ")
    return [cells[4 + 2 * i].partition("(")[0].replace("_", " ") for i in range(int(cells[3], 16))]
