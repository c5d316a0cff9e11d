"""Synonym replacement: a share of the words is replaced by others of the same WordNet synset."""

import re
from collections.abc import Iterator, Sequence
from random import Random

from sentloom.views.maker import seed_for
from sentloom.views.settings import Synonyms
from sentloom.views.wordnet import WordNet, find_wordnet

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
        choices = {word: found for word in words if (found := self._choices(word.group(), word.start() == 0))}
        random = Random(seed_for(self.settings.seed, text))
        count = min(max(1, round(self.settings.share * len(words))), len(choices))
        for word in sorted(random.sample(list(choices), count), key=lambda one: -one.start()):  # last first
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
            others = tuple(one for one in others if one.split(" ")[0] not in self.wordnet.irregular_verbs)
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
