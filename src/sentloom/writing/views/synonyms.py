"""Synonym replacement: some words become others of the same WordNet synset, in the same form.

WordNet's own files are read (index.noun, data.noun ...), from Debian's package or nltk's data.
"""

import hashlib
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from random import Random

from sentloom.errors import MissingPart
from sentloom.files import sha256
from sentloom.writing.views.pairs import seed_for
from sentloom.writing.views.settings import Synonyms

REVISION = 1  # increased when the same WordNet would produce different views
WORD = re.compile(r"[A-Za-z]+(?:['’-][A-Za-z]+)*")
# Function words, never replaced: WordNet has some as rare nouns (a: angstrom, in: inch, who: a health organisation).
GRAMMAR = frozenset(
    """a about above after again against all am an and any are as at be because been before being below between both
    but by can could did do does doing done down during each either else ever few for from further had has have having
    he her here hers him his how i if in into is it its just let may me might mine more most must my neither no nor not
    now of off on once only or other our ours out over own per quite rather same shall she should so some such than that
    the their theirs them then there these they this those through thus to too under until up upon us very was we were
    what when where whether which while who whom whose why will with within without would yet you your yours""".split()
)
# Regular inflection, most specific first: (ending of the form, ending of the lemma). The last letter of a stem may also
# be doubled (running).
ENDINGS = {
    "s": (("ies", "y"), ("ches", "ch"), ("shes", "sh"), ("sses", "ss"), ("xes", "x"), ("zes", "z"), ("s", "")),
    "ed": (("ied", "y"), ("ed", "e"), ("ed", "")),
    "ing": (("ing", "e"), ("ing", "")),
}
FORMS = {"noun": ("s",), "verb": ("s", "ed", "ing")}
SHORTEST = 3  # letters of a lemma
PARTS = ("noun", "verb", "adj", "adv")
FILES = (*(f"{kind}.{part}" for kind in ("index", "data") for part in PARTS), "verb.exc")
DEBIAN = Path("/usr/share/wordnet")


class SynonymReplacement:
    """Replaces words one by one; the choices depend only on the seed and the text."""

    shard = 8192

    def __init__(self, settings: Synonyms) -> None:
        self.settings, self.wordnet = settings, WordNet(find_wordnet())
        self.identity = f"synonyms {REVISION} {self.wordnet.sha256} share {settings.share} seed {settings.seed}"

    def views(self, texts: Sequence[str]) -> Iterator[str]:
        """Yield the texts with some words replaced; a text in which no word has a synonym stays unchanged."""
        return map(self._replace, texts)

    def _replace(self, text: str) -> str:
        words = list(WORD.finditer(text))
        choices = {word: others for word in words if (others := self._choices(word.group(), word.start() == 0))}
        random = Random(seed_for(self.settings.seed, text))
        count = min(max(1, round(self.settings.share * len(words))), len(choices))
        for word in sorted(random.sample(list(choices), count), key=lambda match: -match.start()):  # last first
            new = random.choice(choices[word])
            new = new[0].upper() + new[1:] if word.group()[0].isupper() else new
            text = text[: word.start()] + new + text[word.end() :]
        return text

    def _choices(self, word: str, first: bool) -> list[str]:
        """Return the replacements of a word, in the same form; capitalised words inside a text are names and stay."""
        lower = word.lower()
        if lower in GRAMMAR or len(word) == 1 or not (word == lower or (first and word == word.capitalize())):
            return []
        readings = [(self.wordnet.index[part][lemma], part, lemma, form) for part, lemma, form in self._readings(lower)]
        if not readings:
            return []
        _, part, lemma, form = max(readings)
        others = self.wordnet.synonyms(part, lemma)
        if form == "ed":
            others = tuple(synonym for synonym in others if synonym.split(" ")[0] not in self.wordnet.irregular_verbs)
        return [inflect(other, part, form) for other in others]

    def _readings(self, word: str) -> Iterator[tuple[str, str, str]]:
        """Yield each (part of speech, lemma, form) that WordNet has for a word; form is "" for the lemma itself."""
        for part, known in self.wordnet.index.items():
            if word in known:
                yield part, word, ""
            for form in FORMS.get(part, ()):
                yield from ((part, lemma, form) for lemma in lemmas(word, form) if lemma in known)


def lemmas(word: str, form: str) -> list[str]:
    """List the lemmas that a word could be a regular form of: tries -> trie, try; making -> make, mak."""
    stems = [word.removesuffix(end) + own for end, own in ENDINGS[form] if word.endswith(end)]
    stems += [stem[:-1] for stem in stems if form != "s" and stem[-2:-1] == stem[-1:]]
    return [stem for stem in stems if len(stem) >= SHORTEST and not (form == "s" and stem.endswith("s"))]


def inflect(words: str, part: str, form: str) -> str:
    """Inflect a synonym: the last word of a multi-word noun, the first word of a multi-word verb."""
    if not form:
        return words
    before, space, after = words.rpartition(" ") if part == "noun" else ("", "", words)
    head, rest, tail = after.partition(" ")
    return f"{before}{space}{_form(head, form)}{rest}{tail}"


def _form(word: str, form: str) -> str:
    """Return the regular form of one word."""
    if form != "ing" and re.search("[^aeiou]y$", word):
        return word[:-1] + ("ies" if form == "s" else "ied")
    if form == "s":
        return word + ("es" if re.search("(s|x|z|ch|sh)$", word) else "s")
    if word.endswith("e") and not re.search("(ee|oe|ye)$", word):
        word = word[:-1]
    elif re.fullmatch("[^aeiou]*[aeiou][bdgmnprt]", word):
        word += word[-1]
    return word + form


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
