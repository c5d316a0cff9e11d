"""Read WordNet's own files (index.noun, data.noun ...), from Debian's package or nltk's data."""

import hashlib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from pathlib import Path

from sentloom.errors import MissingPart
from sentloom.files import sha256

PARTS = ("noun", "verb", "adj", "adv")
FILES = (*(f"{kind}.{part}" for kind in ("index", "data") for part in PARTS), "verb.exc")
DEBIAN = Path("/usr/share/wordnet")


def find_wordnet(folders: Iterable[Path] | None = None) -> Path:
    """Find the folder of WordNet's files: in NLTK_DATA, in Debian's package, or where nltk puts its data."""
    for folder in candidates() if folders is None else folders:
        if all((folder / name).is_file() for name in FILES):
            return folder
    raise MissingPart(
        "synonyms",
        f"WordNet is not installed (searched {DEBIAN} and nltk's corpora/wordnet folders)",
        f"a folder with {', '.join(FILES)}",
        "run apt-get install wordnet-base; or download nltk's corpus wordnet, unzip it, and set NLTK_DATA if needed",
    )


def is_installed() -> bool:
    """Whether WordNet's files are found."""
    try:
        return find_wordnet().is_dir()
    except MissingPart:
        return False


def candidates(debian: Path = DEBIAN) -> Iterator[Path]:
    """Yield the folders that may hold WordNet's files, in the order of the search."""
    for named in filter(None, os.environ.get("NLTK_DATA", "").split(os.pathsep)):
        yield from sorted(Path(named).glob("corpora/wordnet*"))
    yield debian
    prefix = Path(sys.prefix)
    usual = [Path.home(), prefix, prefix / "share", prefix / "lib", *map(Path, ("/usr/share", "/usr/local/share"))]
    for place in [*usual, *map(Path, ("/usr/lib", "/usr/local/lib"))]:
        yield from sorted(place.glob("nltk_data/corpora/wordnet*"))


class WordNet:
    """Words and their synonyms. Indexes are parsed once; synsets are parsed from the data files on demand."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._data = {part: (folder / f"data.{part}").read_bytes() for part in PARTS}
        self.synonyms = lru_cache(maxsize=1 << 16)(self._synonyms)

    @cached_property
    def sha256(self) -> str:
        """A hash of all files that synonyms are read from."""
        return hashlib.sha256(" ".join(sha256(self.folder / name) for name in FILES).encode()).hexdigest()

    @cached_property
    def index(self) -> Mapping[str, Mapping[str, tuple[int, int, int]]]:
        """Part of speech -> word -> (senses seen in tagged text, senses, offset of the most frequent one)."""
        return {part: dict(_index(self.folder / f"index.{part}")) for part in PARTS}

    @cached_property
    def irregular_verbs(self) -> frozenset[str]:
        """Verbs with an irregular form; lines are: form verb..."""
        lines = (self.folder / "verb.exc").read_text(encoding="utf-8").splitlines()
        return frozenset(verb for line in lines for verb in line.split()[1:])

    def _synonyms(self, part: str, word: str) -> tuple[str, ...]:
        """Return the other words of a word's most frequent sense."""
        offset = self.index[part][word][2]
        words = _words(self._data[part][offset : self._data[part].index(b"\n", offset)].decode())
        return tuple(other for other in words if other.lower() != word)


def _index(path: Path) -> Iterator[tuple[str, tuple[int, int, int]]]:
    """Parse lines: lemma pos senses pointers symbol... senses tagged offset...; licence lines start with spaces."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            if not line.startswith(" "):
                cells = line.split()
                rest = cells[4 + int(cells[3]) :]
                yield cells[0].replace("_", " "), (int(rest[1]), int(rest[0]), int(rest[2]))


def _words(line: str) -> list[str]:
    """Parse the words of a synset: offset file type count(hex) word id ...; adjectives may be marked: galore(ip)."""
    cells = line.split(" ")
    return [cells[4 + 2 * i].partition("(")[0].replace("_", " ") for i in range(int(cells[3], 16))]
