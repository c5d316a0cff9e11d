"""A text-to-text model with its tokenizer and prompts: it writes and judges."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError
from torch import nn
from transformers import AutoModelForSeq2SeqLM, GenerationConfig, PreTrainedModel, PreTrainedTokenizerBase

from sentloom.encoder.dropout import with_cheap_masks
from sentloom.encoder.folder_checks import reason_of
from sentloom.encoder.loading import quiet
from sentloom.encoder.model_files import find, read_json
from sentloom.encoder.text_models import TextModel, load_model
from sentloom.errors import InputError, MissingPart, ModelError
from sentloom.files import new_folder
from sentloom.writing.prompts import Wording

SETTINGS = "synthesizer.json"
WANTED = "a text-to-text model, such as T5"
SOURCE_LENGTH, TARGET_LENGTH = 96, 48  # the official code's
Ids = list[int]


class TextToText(nn.Module):
    """Reads a prompt with one or two sentences, and writes a sentence or a judgement.

    `source_length` is how many tokens of each sentence it reads; the prompt is never cut.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        wording: Wording | None = None,
        source_length: int = SOURCE_LENGTH,
        target_length: int = TARGET_LENGTH,
    ) -> None:
        super().__init__()
        self.model, self.tokenizer, self.wording = model, tokenizer, wording or Wording()
        self.source_length, self.target_length = source_length, target_length
        with_cheap_masks(model)
        config = model.config
        # Ignore the checkpoint's own decoding settings, such as a forced first token.
        model.generation_config = GenerationConfig(
            pad_token_id=config.pad_token_id,
            eos_token_id=config.eos_token_id,
            decoder_start_token_id=config.decoder_start_token_id,
        )
        self._before, self._behind = self._frame()
        self.verdict_ids = self._find_verdicts()

    @classmethod
    def load(
        cls,
        name: str | Path,
        *,
        wording: Wording | None = None,
        source_length: int | None = None,
        target_length: int | None = None,
    ) -> "TextToText":
        """Load from a folder or the hub. What is not given comes from the folder of a saved synthesizer."""
        if str(name) == "embedded":
            found, wanted = "no synthesizer comes with sentloom", "a folder or a hub name"
            raise MissingPart("synthesizer", found, wanted, "train one: see `sentloom recipes small-synthesizer`")
        loaded = load_model(str(name), AutoModelForSeq2SeqLM, WANTED)
        _check_ids(loaded)
        saved = _saved_settings(loaded.folder)
        given = {"wording": wording, "source_length": source_length, "target_length": target_length}
        settings = saved | {key: value for key, value in given.items() if value is not None}
        try:
            return cls(loaded.model, loaded.tokenizer, **settings)
        except InputError as error:
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
        found: list[Ids] = self.tokenizer(list(texts), add_special_tokens=False, verbose=False)["input_ids"]
        return found

    def target_ids(self, text: str) -> Ids:
        """The target for a text, with its end token."""
        return self.closed(self.bare([text])[0])

    def prompt_ids(self, use: str) -> list[Ids]:
        """The token ids of a prompt's parts: `judge`, or a kind."""
        return self.bare(getattr(self.wording, use))

    def framed(self, prompt: Sequence[Ids], sentences: Sequence[Ids]) -> Ids:
        """Prompt parts and sentences in turn, each sentence cut, with the model's special tokens around them."""
        inside = [*prompt[0]]
        for sentence, piece in zip(sentences, prompt[1:], strict=True):
            inside += [*sentence[: self.source_length], *piece]
        return [*self._before, *inside, *self._behind]

    def closed(self, ids: Ids) -> Ids:
        """A target of at most `target_length` tokens, including its end."""
        return [*ids[: self.target_length - 1], self.end]

    @property
    def end(self) -> int:
        """The token that ends a text."""
        return int(self.model.config.eos_token_id)

    @property
    def pad(self) -> int:
        """The padding token."""
        return int(self.model.config.pad_token_id)

    @property
    def start(self) -> int:
        """The token that the decoder starts with."""
        return int(self.model.config.decoder_start_token_id)

    def text_of(self, ids: Sequence[int]) -> str:
        """The text of generated tokens."""
        return " ".join(str(self.tokenizer.decode(list(ids), skip_special_tokens=True)).split())

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
            raise ModelError("tokenizer", f"no tokens for {probe!r}", "a tokenizer that knows it", "choose other words")
        return framed[:at], framed[at + len(bare) :]

    def _find_verdicts(self) -> tuple[int, int]:
        """The first tokens of true and false, which distinguish the two judgements."""
        true, false = (ids[0] if ids else None for ids in self.bare([self.wording.true, self.wording.false]))
        if true is None or false is None or true == false:
            found = f"{self.wording.true!r} and {self.wording.false!r} begin with the same token"
            raise InputError("wording", found, "verdicts that differ in their first token", "choose other words")
        return true, false


def _check_ids(loaded: TextModel) -> None:
    """Refuse a configuration without the ids that decoding needs."""
    rows = loaded.model.config.vocab_size
    for key in ("eos_token_id", "pad_token_id", "decoder_start_token_id"):
        value = getattr(loaded.model.config, key, None)
        if not (type(value) is int and 0 <= value < rows):
            found, wanted = f"{key} {value!r:.100}", f"an id below {rows}"
            raise ModelError(str(loaded.folder / "config.json"), found, wanted, "correct it, or choose another model")


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
        wanted = "the prompts and lengths of a synthesizer"
        raise ModelError(str(path), reason_of(error), wanted, "save the model again") from None
