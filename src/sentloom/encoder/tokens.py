"""From texts to token ids: prompts, which depend on a sentence's role, special tokens, and the maximum length."""

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from tokenizers import normalizers, processors
from transformers import PreTrainedTokenizerBase

from sentloom.errors import InputError

Role = Literal["symmetric", "query", "document"]
ROLES: tuple[Role, ...] = get_args(Role)
EXPECTED, FIX = f"a Prompt for one of {', '.join(ROLES)}", 'write {"query": Prompt(prefix="...")}'
CHARACTERS = 64  # of a text, read for each token of the maximum length
GROWTH = 8  # times as many are read if these have too few tokens; the rest is never read
LEAST = 1 << 16  # characters of any text that are read in that case
KEPT = 32  # blanks at each end of a longer run
BLANKS = re.compile(rf"(?<!\s)\s{{{2 * KEPT + 1},}}")  # matched once per run, so that the time is linear


@dataclass(frozen=True)
class Prompt:
    """A prefix and a suffix, joined to the sentence as they are, so include the spaces you want.

    >>> from sentloom import Encoder
    >>> encoder = Encoder.load("embedded", prompts={"query": Prompt("search for: ")})
    >>> encoder.encode(["red shoes"], role="query").shape
    (1, 384)
    """

    prefix: str = ""
    suffix: str = ""


Prompts = Mapping[Role, Prompt]


def prompt_for(prompts: Prompts, role: Role) -> Prompt:
    """Return the prompt of a role; query and document fall back to the symmetric one."""
    if role not in ROLES:
        raise InputError("role", f"{role!r} is unknown", f"one of {', '.join(ROLES)}", "correct the role")
    return prompts.get(role, prompts.get("symmetric", Prompt()))


def is_asymmetric(prompts: Prompts) -> bool:
    """Whether queries and documents have different prompts."""
    return prompt_for(prompts, "query") != prompt_for(prompts, "document")


def shared_suffix(prompts: Prompts) -> str | None:
    """Return the suffix that all roles share ("" for none), or None if they differ: a tokenizer can store only one."""
    suffixes = {prompt_for(prompts, role).suffix for role in ROLES}
    return suffixes.pop() if len(suffixes) == 1 else None


def check_prompts(prompts: Prompts) -> None:
    """Refuse unknown roles, and plain strings instead of prompts."""
    for role, prompt in prompts.items():
        if role not in ROLES or not isinstance(prompt, Prompt) or not _is_text(prompt):
            raise InputError("prompts", f"{role!r}: {prompt!r} is not valid", EXPECTED, FIX)


def _is_text(prompt: Prompt) -> bool:
    return isinstance(prompt.prefix, str) and isinstance(prompt.suffix, str)


@dataclass(frozen=True)
class Specials:
    """The ids that the tokenizer adds around every sentence, such as [CLS] ... [SEP]."""

    before: tuple[int, ...]
    after: tuple[int, ...]


class Tokens:
    """A tokenizer with its special tokens and the maximum length of a sentence."""

    def __init__(
        self, tokenizer: PreTrainedTokenizerBase, max_length: int, *, suffix: str = "", lower_case: bool = False
    ) -> None:
        """Wrap a tokenizer. We append the `suffix` from now on, instead of its post-processor."""
        backend = tokenizer.backend_tokenizer
        backend.no_truncation()
        backend.no_padding()
        if lower_case:
            normalizer = backend.normalizer
            backend.normalizer = normalizers.Sequence([normalizers.Lowercase(), *([normalizer] if normalizer else [])])
        self.tokenizer, self.max_length, self.lower_case = tokenizer, max_length, lower_case
        self.specials = self._find_specials(len(self.suffix_ids(suffix)))
        if suffix:
            backend.post_processor = self.frame()
        self.mask: int = -1 if tokenizer.mask_token_id is None else tokenizer.mask_token_id  # -1: there is none
        self._empty = [next(i for i in (tokenizer.unk_token_id, tokenizer.pad_token_id, 0) if i is not None)]

    def bare(self, texts: Sequence[str]) -> list[list[int]]:
        """Return token ids without special tokens or truncation."""
        backend = self.tokenizer.backend_tokenizer
        return [encoding.ids for encoding in backend.encode_batch_fast(list(texts), add_special_tokens=False)]

    def __call__(self, texts: Sequence[str], prompt: Prompt) -> list[list[int]]:
        """Return the ids of each text with prompt and special tokens; a text without any ids becomes one unknown."""
        return self.truncate(texts, prompt)[0]

    def truncate(
        self, texts: Sequence[str], prompt: Prompt, most: int = sys.maxsize
    ) -> tuple[list[list[int]], list[int]]:
        """Return these ids, and the positions of the texts that were cut; `most` characters of each text are read."""
        before = list(self.specials.before)
        after = [*self.suffix_ids(prompt.suffix), *self.specials.after]
        room = self.max_length - len(before) - len(after)
        self._check_room(prompt, room)
        whole, size = [prompt.prefix + text for text in texts], min(most, room * CHARACTERS)
        sentences = self.bare([_start(text, size) for text in whole])
        longer = min(most, max(LEAST, room * CHARACTERS * GROWTH))
        unread = set()
        for at in [at for at, text in enumerate(whole) if len(text) > size and len(sentences[at]) <= 2 * room]:
            # a cut between words may change only the last ids: twice as many ids as are used make it safe
            sentences[at], cut = self._longer_start(whole[at], longer, room)
            unread |= {at} if cut else set()
        truncated = [at for at, ids in enumerate(sentences) if len(ids) > room or at in unread]
        return [[*before, *ids[:room], *after] or self._empty for ids in sentences], truncated

    def _longer_start(self, text: str, size: int, room: int) -> tuple[list[int], bool]:
        """Return the ids of more of a text whose start has few tokens, and whether the rest was still not read.

        Such a start has a long run of blanks, for which many tokenizers have no tokens, or of letters that become one
        unknown token. The cost of a text is bounded: runs of blanks are shortened, and the rest is cut.
        """
        text = BLANKS.sub(lambda run: run[0][:KEPT] + run[0][-KEPT:], text)
        ids = self.bare([_start(text, size)])[0]
        return ids, len(text) > size and len(ids) <= room

    def suffix_ids(self, suffix: str) -> list[int]:
        """Return the ids of a suffix, tokenised separately so that they are the same after every sentence."""
        return self.bare([suffix])[0] if suffix else []

    def frame(self, suffix: str = "") -> processors.TemplateProcessing:
        """Return a post-processor of the tokenizers library that adds the special tokens and a suffix.

        The suffix is a special token with several ids, so that truncation cuts the sentence before it.
        """
        around = [*self.specials.before, *self.specials.after]
        parts = {"suffix": self.suffix_ids(suffix)} | {f"special-{i}": [i] for i in around}
        frame = [
            *(f"special-{i}" for i in self.specials.before),
            "$A",
            *(["suffix"] if suffix else []),
            *(f"special-{i}" for i in self.specials.after),
        ]
        names = self.tokenizer.convert_ids_to_tokens
        special_tokens = [{"id": name, "ids": ids, "tokens": names(ids)} for name, ids in parts.items() if ids]
        return processors.TemplateProcessing(single=frame, pair=[*frame, "$B"], special_tokens=special_tokens)

    def _find_specials(self, suffix_length: int) -> Specials:
        """Find the special tokens that the tokenizer's post-processor adds, without a suffix."""
        backend = self.tokenizer.backend_tokenizer
        probes = ("a", "1", ".", *(backend.id_to_token(i) or "" for i in range(min(1000, backend.get_vocab_size()))))
        probe = next(text for text in probes if self.bare([text])[0])  # a small vocabulary may lack the first probes
        framed, bare = backend.encode(probe, add_special_tokens=True).ids, self.bare([probe])[0]
        start = next(i for i in range(len(framed)) if framed[i : i + len(bare)] == bare)
        return Specials(tuple(framed[:start]), tuple(framed[start + len(bare) + suffix_length :]))

    def _check_room(self, prompt: Prompt, room: int) -> None:
        prefix = len(self.bare([prompt.prefix])[0]) if prompt.prefix else 0
        if room <= prefix:
            raise InputError(
                "prompt",
                f"prefix, suffix and special tokens take {self.max_length - room + prefix} tokens",
                f"fewer than the maximum length of {self.max_length} tokens",
                "shorten the prompt or raise max_length",
            )


def _start(text: str, size: int) -> str:
    """The words of a text within its first `size` characters; cut inside the last one if it fills most of them."""
    if len(text) <= size:
        return text
    words = text[:size].rsplit(None, 1)[:-1]  # without the last one, of which a part may be missing
    return words[0] if words and len(words[0]) > size // 2 else text[:size]
