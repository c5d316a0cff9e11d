"""Detect the languages of texts: by script if that is enough, else by function words and letters.

`guess_language` looks at all texts together; `language_shares` looks at each one, so that mixed files are recognised.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from sentloom.hygiene.scripts import SCRIPTS, dominant_scripts

SAMPLED = 2_000  # texts to look at, evenly spaced
LONGEST = 1_000  # characters to look at per text
LEAST_SHARE = 0.08  # of the words must be function words; prose has 0.2 to 0.5, terse captions 0.1 and more
# For single texts: the evidence that the most likely language must have, and its lead over the next one.
LEAST_EVIDENCE = 0.5
LEAST_LEAD = 0.25
LEAST_RECOGNISED = 0.2  # of the texts; with fewer, all texts are classified together
LEAST_LANGUAGE = 0.02  # of the recognised texts; anything rarer is probably a mistake
FEWEST_TEXTS = 3  # per language
ONE_LANGUAGE = 0.9  # of the recognised texts; a file with less of its main language is mixed
WITH_KANA = 0.2  # of the texts in Han and Kana; Japanese prose almost always has Kana
UNDETERMINED = "und"  # ISO 639-2: texts whose language is not recognised
LETTERS = re.compile(r"[^\W\d_]+")

NAMES = {
    "ar": "Arabic", "bg": "Bulgarian", "cs": "Czech", "da": "Danish", "de": "German", "el": "Greek", "en": "English",
    "es": "Spanish", "fa": "Persian", "fi": "Finnish", "fr": "French", "he": "Hebrew", "hi": "Hindi",
    "hu": "Hungarian", "id": "Indonesian", "it": "Italian", "ja": "Japanese", "ko": "Korean", "nl": "Dutch",
    "no": "Norwegian", "pl": "Polish", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian", "sv": "Swedish",
    "th": "Thai", "tr": "Turkish", "uk": "Ukrainian", "zh": "Chinese",
    UNDETERMINED: "not recognised",
}  # fmt: skip
BY_SCRIPT = {"Greek": "el", "Hebrew": "he", "Devanagari": "hi", "Thai": "th", "Hangul": "ko"}

# The most frequent function words, about as many for each language. Words of one letter are left out: initials and
# codes are full of them.
FUNCTION_WORDS: dict[str, dict[str, str]] = {
    "Latin": {
        "en": "the of and to in is that it for on with as was at by this are be from have not you he she we my your his"
        " her me or an which there what how they who will can has were would if do don did let",
        "de": "der die und das den ist nicht ein eine einen einem einer zu mit von auf für dem des im sich auch es er"
        " sie ich wir dass wie bei aus nach hat sind war als wird oder an um noch wenn aber was kann mein",
        "fr": "le la les de des du un une et est en dans que qui pour pas sur il elle ce cette au aux par avec ne se"
        " vous nous je son sa ses plus sont mais ou où été être comme on leur",
        "es": "el la los las de del que en un una por con para se no es su al lo como más pero sus está le ha me si"
        " sin sobre este esta muy hay son ser fue cuando qué uno dos",
        "pt": "os as de do da dos das que em no na nos nas um uma não com para por se ao mais mas como foi ele ela"
        " está são seu sua tem isso você ou quando muito já também pelo pela eu",
        "it": "il lo la gli le di del della dei delle che un una uno in non per con si al alla da dal nel nella"
        " sono come più anche ma su questo questa ha ho se mi era loro cosa ci",
        "nl": "de het een en van in is dat op te zijn niet met voor er aan die ik hij ze we je om ook als dan maar"
        " naar bij uit over door wordt heeft was dit wat kan nog deze hun of",
        "sv": "och att det en ett är som på av för inte den med till jag han hon vi de om har var men så från kan"
        " eller när hur sig du vad ska skulle mycket också efter vid sin",
        "da": "og at det en et er som på af for ikke den med til jeg han hun vi de om har var men så fra kan eller"
        " når hvor sig du hvad skal ville meget også efter ved sin blev nogle",
        "no": "og at det en et er som på av for ikke den med til jeg han hun vi de om har var men så fra kan eller"
        " når hvor seg du hva skal ville veldig også etter ved sin ble noen",
        "fi": "ja on ei että se oli hän ovat joka kun mutta olla tai niin kuin myös mitä minä sinä hänen sen tämä ole"
        " vain mukaan jos hyvin voi ollut siitä tämän kaikki olen sitä jo nyt",
        "pl": "nie się na to do jest że jak za od po ale co czy tak dla przez był była przy są ma ten tego tym może"
        " oraz lub jego jej ich które który ze we już tylko bardzo",
        "cs": "se na je že to do ve si za od po ale jak pro při jsem jsou byl byla bylo které který má nebo tak až"
        " když není jeho její jejich ze by ho jako již také co už jen před",
        "tr": "bir ve bu da de için ile çok ne var mı mi gibi daha olarak en olan sonra kadar ama değil her ben sen"
        " biz onun bunu şey oldu ki veya kendi iki nasıl diye yok bana",
        "ro": "și de în la cu pe nu un din că este pentru care mai au fost sunt ca se al ale lui ei sau dar prin"
        " într după până cum ce îl îi am era fi acest această cele",
        "hu": "az és hogy nem is egy ez van volt de csak már el meg mint azt ha még ki vagy ezt nagyon minden kell be"
        " fel lehet majd én te mi ön lesz után között akkor itt",
        "id": "yang dan di ke dari itu ini untuk dengan tidak pada adalah dalam akan saya kami dia mereka anda oleh"
        " atau juga ada bisa sudah telah sebagai karena lebih apa bukan seorang harus orang",
    },
    "Cyrillic": {
        "ru": "не на что он это как по но из за от так все она для же был бы только его было мы вы если или уже"
        " они есть во её быть их меня ещё когда нет со до",
        "uk": "не на що він це як по але із за від так все вона для був би тільки його було ми ви якщо або вже"
        " вони та її бути їх мене ще коли немає зі до",
        "bg": "не на че той това как по но от за така всичко тя се ще бил да само го беше ние вие ако или вече те"
        " са със във съм си към при много когато няма до",
    },
    "Arabic": {
        "ar": "في من على إلى أن إن ما لا هذا هذه التي الذي عن مع كان كانت لم هو هي أو ذلك كل قد بعد لكن كما هناك"
        " بين حتى عند ليس أنا نحن لقد كنت وكان لن أنه",
        "fa": "که از به در را با این آن است برای می تا یک بر خود بود هم نیز ما شد اما اگر یا شود های کرد دارد باید"
        " من شما آنها هر چه نیست نمی همه بودند",
    },
}  # fmt: skip


# Letters that English lacks, by the languages that use them. A letter counts as half a function word.
LETTERS_OF = {
    "de": "äöüß", "sv": "åäö", "fi": "äö", "da": "åæø", "no": "åæø", "pl": "ąćęłńóśźż", "cs": "áčďéěíňóřšťúůýž",
    "hu": "áéíóöőúüű", "tr": "çğıöşü", "ro": "ăâîșțşţ", "es": "áéíñóúü", "pt": "áâãàçéêíóôõú", "fr": "àâçèéêëîïôùûœ",
    "it": "àèéìòù", "nl": "ëï",
}  # fmt: skip
LETTER_WEIGHT = 0.5


def _weights(owners: dict[str, Sequence[str]], each: float = 1.0) -> dict[str, dict[str, float]]:
    """Return the weight of each word or letter for its languages, divided among the languages that share it."""
    found: dict[str, list[str]] = {}
    for code, ones in owners.items():
        for one in dict.fromkeys(ones):
            found.setdefault(one, []).append(code)
    return {one: dict.fromkeys(codes, each / len(codes)) for one, codes in found.items()}


WORD_WEIGHTS = {
    script: _weights({code: known.split() for code, known in languages.items()})
    for script, languages in FUNCTION_WORDS.items()
}
LETTER_WEIGHTS = _weights({code: list(letters) for code, letters in LETTERS_OF.items()}, LETTER_WEIGHT)


def language_shares(texts: Sequence[str]) -> dict[str, float]:
    """Return ISO 639-1 codes with their shares of the texts, the largest first; `und` (undetermined) is the rest.

    Each text is classified on its own; one without a function word or a distinctive letter is not recognised, which is
    common for short messages. Languages below 2% of the recognised texts count as undetermined. If few texts are
    recognised, as with file names or codes, all are classified together.
    """
    sample = [unicodedata.normalize("NFC", text[:LONGEST]) for text in _evenly(texts)]
    evidence = _evidence(sample)
    counts = Counter(filter(None, map(_likeliest, evidence)))
    if counts.total() < LEAST_RECOGNISED * len(evidence) or not counts:
        code = guess_language(texts)
        return {code: 1.0} if code else {}
    least = max(FEWEST_TEXTS if len(evidence) > FEWEST_TEXTS else 1, LEAST_LANGUAGE * counts.total())
    likely = {code for code, count in counts.items() if count >= least} or {counts.most_common(1)[0][0]}
    again = (_likeliest({code: value for code, value in one.items() if code in likely}) for one in evidence)
    found = Counter(filter(None, again))
    shares = {
        code: count / len(evidence) for code, count in found.most_common() if count >= LEAST_LANGUAGE * found.total()
    }
    rest = 1 - sum(shares.values())
    return {**shares, UNDETERMINED: rest} if rest >= LEAST_LANGUAGE else shares


def recognised(shares: Mapping[str, float]) -> dict[str, float]:
    """Return the shares without the undetermined rest."""
    return {code: share for code, share in shares.items() if code != UNDETERMINED}


def main_language(shares: Mapping[str, float]) -> str | None:
    """Return the language of nearly all recognised texts; None if none is recognised or several are mixed."""
    known = recognised(shares)
    code = max(known, key=lambda code: known[code], default=None)
    return code if code is not None and known[code] >= ONE_LANGUAGE * sum(known.values()) else None


def shares_in_words(shares: Mapping[str, float]) -> str:
    """Format shares as "English", or for a mixed file "English 50%, German 20%, Polish 15%, not recognised 15%"."""
    code = main_language(shares)
    if code is not None or not recognised(shares):
        return language_name(code)
    return ", ".join(f"{NAMES.get(code, code)} {share:.0%}" for code, share in shares.items())


def _evidence(texts: Sequence[str]) -> list[dict[str, float]]:
    """Return the evidence for each language, for each text with letters."""
    scripts = [SCRIPTS[number] for number in dominant_scripts(pa.array(texts, pa.large_string()))]
    written = [(text, "Han" if script == "Kana" else script) for text, script in zip(texts, scripts, strict=True)]
    asian = [text for text, script in written if script == "Han"]
    han = "ja" if asian and _share_with_kana(asian) >= WITH_KANA else "zh"
    by_script = {**BY_SCRIPT, "Han": han}
    return [
        {by_script[script]: 1.0} if script in by_script else _by_words_and_letters(text, script)
        for text, script in written
        if script in by_script or script in WORD_WEIGHTS
    ]


def _by_words_and_letters(text: str, script: str) -> dict[str, float]:
    lower = text.lower()
    hits = [WORD_WEIGHTS[script].get(word) for word in LETTERS.findall(lower)]
    if script == "Latin" and not lower.isascii():
        hits += [LETTER_WEIGHTS.get(letter) for letter in lower]
    found: dict[str, float] = {}
    for hit in filter(None, hits):
        for code, weight in hit.items():
            found[code] = found.get(code, 0.0) + weight
    return found


def _likeliest(evidence: Mapping[str, float]) -> str | None:
    """Return the language with the most evidence; None if there is too little, or hardly more than for another."""
    if not evidence:
        return None
    best, *others = sorted(evidence, key=lambda code: -evidence[code])
    lead = evidence[best] - (evidence[others[0]] if others else 0.0)
    return best if evidence[best] >= LEAST_EVIDENCE and lead >= LEAST_LEAD else None


def guess_language(texts: Sequence[str]) -> str | None:
    """Return the ISO 639-1 code of the main language of the texts; None if no language has enough evidence.

    A language that is not in the tables gives None or a close relative (Czech for Slovak).
    """
    sample = [unicodedata.normalize("NFC", text[:LONGEST]) for text in _evenly(texts)]
    script = _script(sample)
    if script == "Han":
        return "ja" if _share_with_kana(sample) >= WITH_KANA else "zh"
    if script in FUNCTION_WORDS:
        return _by_function_words(sample, FUNCTION_WORDS[script])
    return BY_SCRIPT.get(script)


def language_name(code: str | None) -> str:
    """Return the English name of a result of `guess_language`."""
    return "an unrecognised language" if code is None else NAMES[code]


def _evenly(texts: Sequence[str]) -> list[str]:
    at = np.unique(np.linspace(0, len(texts) - 1, min(len(texts), SAMPLED)).astype(np.int64))
    return [texts[place] for place in at]


def _script(texts: Sequence[str]) -> str:
    """Return the script of more than half of the texts with letters, counting Kana as Han; "" if there is none."""
    counts = np.bincount(dominant_scripts(pa.array(texts, pa.large_string())), minlength=len(SCRIPTS))
    shares = dict(zip(SCRIPTS, counts.tolist(), strict=True))
    del shares["none"]
    shares["Han"] += shares.pop("Kana")
    script = max(shares, key=lambda name: shares[name])
    return script if 2 * shares[script] > sum(shares.values()) else ""


def _share_with_kana(texts: Sequence[str]) -> float:
    kana = re.compile(r"[\u3041-\u30fa]")
    written = [text for text in texts if LETTERS.search(text)]
    return sum(kana.search(text) is not None for text in written) / len(written)


def _by_function_words(texts: Sequence[str], languages: dict[str, str]) -> str | None:
    """Return the language whose function words have the largest share of all words, if it is large enough."""
    words = Counter(word for text in texts for word in LETTERS.findall(text.lower()))
    shares = {code: sum(words[word] for word in set(known.split())) for code, known in languages.items()}
    best = max(shares, key=lambda code: shares[code])
    return best if shares[best] >= LEAST_SHARE * words.total() else None
