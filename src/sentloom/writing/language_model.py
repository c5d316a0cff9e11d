"""A language model with its tokenizer and prompts, which writes and judges: what all families share."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from pydantic import ValidationError
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from sentloom.encoder.folder_checks import reason_of
from sentloom.encoder.loading import TextModel, load_model, quiet
from sentloom.encoder.model_files import find, read_json
from sentloom.encoder.packing import with_cheap_masks
from sentloom.errors import InputError, ModelError
from sentloom.files import new_folder
from sentloom.writing.sampling import Draw
from sentloom.writing.writer import Wording, WritingPrompt

SETTINGS = "synthesizer.json"
SOURCE_LENGTH, TARGET_LENGTH = 96, 48  # the official code's
Ids = list[int]


class LanguageModel(nn.Module):
    """Reads a prompt with one or two sentences, and writes a sentence or a judgement.

    `source_length` is how many tokens of each sentence it reads; the prompt is never cut. `wording` are the prompts
    that it was trained with, or None.
    """

    AUTO: ClassVar[Any]  # transformers' class
    WANTED: ClassVar[str]
    BATCH: ClassVar[int] = 64  # texts written at a time
    GROUP: ClassVar[int] = 64  # instances of a training step per forward pass
    LEAD: ClassVar[str] = ""  # what comes between a prompt and a target
    SOURCE_LENGTH: ClassVar[int] = SOURCE_LENGTH
    TARGET_LENGTH: ClassVar[int] = TARGET_LENGTH

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        wording: Wording | None = None,
        source_length: int | None = None,
        target_length: int | None = None,
    ) -> None:
        super().__init__()
        self.model, self.tokenizer = model, tokenizer
        self.learned = wording
        self.wording = wording or self.untrained_wording()
        self.source_length = source_length or self.SOURCE_LENGTH
        self.target_length = target_length or self.TARGET_LENGTH
        with_cheap_masks(model)
        self.prepare()
        self._before, self._behind = self._frame()
        self.verdict_ids = self._find_verdicts()

    # What the two families do differently

    @staticmethod
    def untrained_wording() -> Wording:
        """The wording of a model that was not trained to write and to judge."""
        raise NotImplementedError

    def prepare(self) -> None:
        """Set what decoding depends on."""
        raise NotImplementedError

    def prefix(self, ids: Ids) -> Any:
        """What can be computed once for all rows that begin with these tokens; None if nothing can."""
        return None

    def decode(self, rows: Sequence[Ids], longest: int, draw: Draw | None, prefix: Any = None) -> list[Ids]:
        """At most `longest` tokens for each row, sampled, or the most likely ones; the last one may end the text."""
        raise NotImplementedError

    def target_logits(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> Tensor:
        """(all target tokens, V): the logits of each token of each target, row by row."""
        raise NotImplementedError

    def first_logits(self, sources: Sequence[Ids], prefix: Any = None) -> Tensor:
        """(n, V): the logits of the first token of each target."""
        raise NotImplementedError

    @classmethod
    def check_ids(cls, loaded: TextModel) -> None:
        """Refuse a configuration without the ids that decoding needs."""
        raise NotImplementedError

    # What they share

    @classmethod
    def load(
        cls,
        name: str | Path,
        *,
        wording: Wording | None = None,
        source_length: int | None = None,
        target_length: int | None = None,
    ) -> Self:
        """Load from a folder or the hub. What is not given comes from the folder of a trained model."""
        loaded = load_model(str(name), cls.AUTO, cls.WANTED)
        cls.check_ids(loaded)
        saved = _saved_settings(loaded.folder)
        options = {"wording": wording, "source_length": source_length, "target_length": target_length}
        settings = saved | {key: value for key, value in options.items() if value is not None}
        try:
            return cls(loaded.model, loaded.tokenizer, **settings)
        except (InputError, ModelError) as error:
            if wording or not saved:
                raise
            where = str(loaded.folder / SETTINGS)
            raise ModelError(where, error.problem, error.expected, error.fix) from None

    def save(self, folder: Path) -> None:
        """Write an ordinary transformers folder that also contains the prompts."""
        with new_folder(folder) as part, quiet():
            self.model.save_pretrained(part)
            self.tokenizer.save_pretrained(part)
            (part / SETTINGS).write_text(json.dumps(self._settings(), indent=1, ensure_ascii=False), "utf-8")

    @property
    def sha256(self) -> str:
        """A hash of everything that its output depends on: configuration, weights, tokenizer, prompts, lengths."""
        digest = hashlib.sha256(self.model.config.to_json_string().encode())
        for name, tensor in sorted(self.model.state_dict().items()):
            digest.update(f"{name} {tuple(tensor.shape)}".encode())
            digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
        backend = getattr(self.tokenizer, "backend_tokenizer", None)
        words = backend.to_str() if backend else json.dumps(self.tokenizer.get_vocab(), sort_keys=True)
        digest.update(f"{json.dumps(self._settings())} {words}".encode())
        return digest.hexdigest()

    def bare(self, texts: Sequence[str]) -> list[Ids]:
        """Token ids without special tokens, uncut."""
        if not texts:
            return []
        ids: list[Ids] = self.tokenizer(list(texts), add_special_tokens=False, verbose=False)["input_ids"]
        return ids

    def sentences(self, texts: Sequence[str]) -> list[Ids]:
        """The token ids of what is put into a prompt."""
        return self.bare(texts)

    def targets(self, texts: Sequence[str]) -> list[Ids]:
        """The token ids of what follows a prompt, without the end."""
        return self.bare([f"{self.LEAD}{text}" for text in texts])

    def target_ids(self, text: str) -> Ids:
        """The target for a text, with its end token."""
        return self.closed(self.targets([text])[0])

    def prompt_ids(self, prompt: WritingPrompt) -> list[Ids]:
        """The token ids of a prompt's two parts."""
        return self.bare(prompt.around)

    @property
    def judge_ids(self) -> list[Ids]:
        """The token ids of the three parts around two sentences to judge."""
        return self.bare(self.wording.judge)

    def framed(self, prompt: Sequence[Ids], sentences: Sequence[Ids]) -> Ids:
        """Prompt parts and sentences in turn, each sentence cut, with the model's special tokens around them."""
        inside = [*prompt[0]]
        for sentence, piece in zip(sentences, prompt[1:], strict=True):
            inside += [*sentence[: self.source_length], *piece]
        return [*self._before, *inside, *self._behind]

    def opening(self, prompt: Sequence[Ids]) -> Ids:
        """What every row with this prompt begins with."""
        return [*self._before, *prompt[0]]

    def closed(self, ids: Ids) -> Ids:
        """A target of at most `target_length` tokens, including its end."""
        return [*ids[: self.target_length - 1], self.end]

    @property
    def end(self) -> int:
        """The token that ends a text."""
        return int(self.model.config.eos_token_id)

    @property
    def temperature(self) -> float:
        """What it writes well with."""
        return 1.0

    @property
    def stops(self) -> frozenset[int]:
        """All tokens that end a text."""
        return frozenset([self.end])

    @property
    def pad(self) -> int:
        """The padding token."""
        return int(self.model.config.pad_token_id)

    def text_of(self, ids: Sequence[int]) -> str:
        """The text of generated tokens."""
        return " ".join(str(self.tokenizer.decode(list(ids), skip_special_tokens=True)).split())

    def finished(self, ids: Sequence[int]) -> bool:
        """Whether a text ended by itself."""
        return bool(ids) and ids[-1] in self.stops

    def _settings(self) -> dict[str, Any]:
        return {
            "wording": self.wording.model_dump(mode="json"),
            "source_length": self.source_length,
            "target_length": self.target_length,
        }

    def _frame(self) -> tuple[Ids, Ids]:
        """The special tokens that the tokenizer puts before and after a text."""
        probe = self.wording.true
        framed, bare = self.tokenizer(probe)["input_ids"], self.bare([probe])[0]
        at = next((i for i in range(len(framed)) if framed[i : i + len(bare)] == bare), None)
        if not bare or at is None:
            raise ModelError(
                "tokenizer", f"it has no tokens for {probe!r}", "a tokenizer that knows it", "choose other words"
            )
        return framed[:at], framed[at + len(bare) :]

    def _find_verdicts(self) -> tuple[int, int]:
        """The first tokens of true and false, which distinguish the two judgements."""
        true, false = (ids[0] if ids else None for ids in self.targets([self.wording.true, self.wording.false]))
        if true is None or false is None or true == false:
            problem = f"{self.wording.true!r} and {self.wording.false!r} begin with the same token"
            raise InputError("wording", problem, "verdicts that differ in their first token", "choose other words")
        return true, false


def refuse_ids(loaded: TextModel, *keys: str) -> None:
    """Refuse a configuration without one of these ids."""
    rows = loaded.model.config.vocab_size
    for key in keys:
        value = getattr(loaded.model.config, key, None)
        if not (type(value) is int and 0 <= value < rows):
            problem, fix = f"{key} is {value!r:.100}", "correct it, or choose another model"
            raise ModelError(str(loaded.folder / "config.json"), problem, f"an id below {rows}", fix)


def padded(rows: Sequence[Ids], model: LanguageModel, left: bool = False) -> tuple[Tensor, Tensor]:
    """(n, longest) ids, and a mask of those that are not padding, which comes last, or first."""
    longest = max(map(len, rows))
    filled = [[model.pad] * (longest - len(row)) for row in rows]
    cells = [[*fill, *row] if left else [*row, *fill] for row, fill in zip(rows, filled, strict=True)]
    ids = torch.tensor(cells, device=model.model.device)
    lengths = torch.tensor([len(row) for row in rows], device=ids.device)
    places = torch.arange(longest, device=ids.device)
    return ids, (longest - 1 - places if left else places) < lengths[:, None]


@contextmanager
def head_at(model: LanguageModel, places: Tensor) -> Iterator[None]:
    """The head over the vocabulary, the most expensive part of a small model, only runs at `places` (n, length)."""
    head = model.model.get_output_embeddings()
    hook = head.register_forward_pre_hook(lambda _, states: (states[0][places],))
    try:
        yield
    finally:
        hook.remove()


def _saved_settings(folder: Path) -> dict[str, Any]:
    path = find(folder, SETTINGS)
    if not path:
        return {}
    values = read_json(path)
    try:
        lengths = {key: values[key] for key in ("source_length", "target_length")}
        if not all(type(length) is int and length >= 2 for length in lengths.values()):
            raise ValueError(f"lengths {lengths}")
        return {**lengths, "wording": Wording(**values["wording"])}
    except (ValueError, KeyError, TypeError, ValidationError) as error:
        expected = "the prompts and lengths of a synthesizer"
        raise ModelError(str(path), reason_of(error), expected, "save the model again") from None
