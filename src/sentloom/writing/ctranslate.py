"""Run the model with CTranslate2, which is fast on a CPU: converted when first needed, and cached by its hash."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from sentloom.encoder.device import device_for, keeping_threads
from sentloom.encoder.loading import quiet
from sentloom.errors import MissingPart, ModelError
from sentloom.files import is_sealed, new_folder, seal
from sentloom.writing.causal import Causal
from sentloom.writing.judges import chance_of_true, judge, judging_ids
from sentloom.writing.language_model import Ids, LanguageModel
from sentloom.writing.sampling import Sampling
from sentloom.writing.text_to_text import as_written, writing_ids
from sentloom.writing.writer import Kind, Pair, SourceText, WritingPrompt, Written

BATCH = 32  # texts that a worker runs at a time; finished ones leave the batch
AT_ONCE = 512  # pairs whose logits over the whole vocabulary fit in memory together
SCALES = ("t5", "mt5")
WANTED, NEXT_STEP = "T5, mT5, BART, Llama or one of its relatives", "use the backend transformers"
PROBES = [
    ("A man is playing a guitar.", "Someone makes music."),
    ("Two dogs run through the snow.", "The dogs are asleep in the house."),
    ("It rained all night, and the river rose above its banks.", "The river is dry."),
]
FAR = {"float32": 1e-3, "int8": 0.25}  # mean difference of P(true), larger than rounding explains

Precision = Literal["float32", "int8"]


class CTranslate2Writer:
    """CTranslate2 with its own sampler, one worker per core.

    Each worker has one random stream that starts from the seed: a text depends on what was written before it, and two
    runs may write different texts. Greedy texts and judgements depend on nothing else. With `int8`, weights are
    rounded, and scores change a little.
    """

    def __init__(self, model: LanguageModel, sampling: Sampling, cache: Path, precision: Precision = "float32") -> None:
        """`cache` is the folder for converted models."""
        package = _package()
        self.name = "ctranslate2" if precision == "float32" else f"ctranslate2-{precision}"
        self._model, self._sampling = model.eval(), sampling
        self._words = model.tokenizer.convert_ids_to_tokens(list(range(len(model.tokenizer))))
        folder = cache / f"{model.sha256}-{precision}-{package.__version__}"
        if not is_sealed(folder):
            _convert(model, folder, precision)
            seal(folder)
        package.set_random_seed(sampling.seed)  # before the workers start: each reads it once
        self._engine = _open(self.opener(package), folder, precision)
        self._prove(precision)

    def write(self, sources: Sequence[SourceText], kind: Kind, prompt: WritingPrompt) -> list[Written]:
        """See `Writer`."""
        how = self._sampling
        limits = {"sampling_topk": how.top_k, "sampling_topp": how.top_p, "sampling_temperature": how.heat}
        ids = writing_ids(self._model, sources, prompt)
        opening = self._model.opening(self._model.prompt_ids(prompt))
        out = self.texts(ids, opening, how.length, **({"sampling_topk": 1} if how.greedy else limits))
        return [as_written(self._model, read, written) for read, written in zip(ids, out, strict=True)]

    def judge(self, pairs: Sequence[Pair]) -> NDArray[np.float64]:
        """See `Writer`."""
        verdicts = list(self._model.verdict_ids)
        opening = self._model.opening(self._model.judge_ids)
        logits = np.empty((len(pairs), 2))
        for at in range(0, len(pairs), AT_ONCE):
            ids = judging_ids(self._model, pairs[at : at + AT_ONCE])
            for row, first in enumerate(self.firsts(ids, opening), at):
                logits[row] = first[verdicts]
        return chance_of_true(logits[:, 0], logits[:, 1])

    def opener(self, package: Any) -> Any:
        """The class of CTranslate2 that runs the model."""
        raise NotImplementedError

    def texts(self, ids: Sequence[Ids], opening: Ids, longest: int, **options: Any) -> list[Ids]:
        """The tokens written for each row; all rows begin with `opening`."""
        raise NotImplementedError

    def firsts(self, ids: Sequence[Ids], opening: Ids) -> list[NDArray[np.float32]]:
        """The logits (V,) of the first token of each row."""
        raise NotImplementedError

    def words(self, ids: Ids) -> list[str]:
        """Tokens as CTranslate2 names them."""
        return [self._words[i] for i in ids]

    def _prove(self, precision: Precision) -> None:
        """Refuse a conversion whose judgements differ from the model's: converters lag behind transformers."""
        off = np.abs(self.judge(PROBES) - judge(self._model, PROBES)).mean()
        if not off <= FAR[precision]:
            kind = self._model.model.config.model_type
            problem = f"once converted, this {kind} model judges differently, by {off:.2g}"
            raise ModelError("backend ctranslate2", problem, WANTED, NEXT_STEP)


class TextToTextWriter(CTranslate2Writer):
    """T5, mT5, BART."""

    def opener(self, package: Any) -> Any:
        """Encoder and decoder."""
        return package.Translator

    def texts(self, ids: Sequence[Ids], opening: Ids, longest: int, **options: Any) -> list[Ids]:
        """`min_decoding_length` is 0 as in transformers: a text may be empty."""
        results = self._run(ids, min_decoding_length=0, max_decoding_length=longest, return_end_token=True, **options)
        name: Any = self._model.tokenizer.convert_tokens_to_ids
        return [name(result.hypotheses[0]) for result in results]

    def firsts(self, ids: Sequence[Ids], opening: Ids) -> list[NDArray[np.float32]]:
        """From a text of one token."""
        results = self._run(ids, max_decoding_length=1, return_logits_vocab=True)
        return [np.asarray(result.logits[0][0]) for result in results]

    def _run(self, ids: Sequence[Ids], **options: Any) -> list[Any]:
        """One result per row, in order; CTranslate2 sorts rows by length itself."""
        rows = [self.words(row) for row in ids]
        return self._engine.translate_batch(rows, beam_size=1, max_batch_size=BATCH, **options) if rows else []


class CausalWriter(CTranslate2Writer):
    """Llama and its relatives; what all rows begin with is computed once and kept."""

    def opener(self, package: Any) -> Any:
        """A decoder."""
        return package.Generator

    def texts(self, ids: Sequence[Ids], opening: Ids, longest: int, **options: Any) -> list[Ids]:
        """With the token that ended them."""
        results = self._run(ids, opening, max_length=longest, return_end_token=True, **options)
        return [result.sequences_ids[0] for result in results]

    def firsts(self, ids: Sequence[Ids], opening: Ids) -> list[NDArray[np.float32]]:
        """From a text of one token; for all but the shortest prompt, logits of its last tokens come first."""
        results = self._run(ids, opening, max_length=1, return_logits_vocab=True)
        return [np.asarray(result.logits[0][-1]) for result in results]

    def _run(self, ids: Sequence[Ids], opening: Ids, **options: Any) -> list[Any]:
        rows = [self.words(row[len(opening) :]) for row in ids]
        if not rows:
            return []
        return self._engine.generate_batch(
            rows,
            static_prompt=self.words(opening),
            include_prompt_in_result=False,
            end_token=sorted(self._model.stops),
            beam_size=1,
            max_batch_size=BATCH,
            **options,
        )


def open_ctranslate2(
    model: LanguageModel, sampling: Sampling, cache: Path, precision: Precision = "float32"
) -> CTranslate2Writer:
    """The writer for a model's family."""
    kind = CausalWriter if isinstance(model, Causal) else TextToTextWriter
    return kind(model, sampling, cache, precision)


def _package() -> Any:
    try:
        import ctranslate2
    except ImportError:
        problem, fix = (
            "the package ctranslate2 is not installed",
            "pip install 'sentloom[ctranslate2]', or use the backend transformers",
        )
        raise MissingPart("backend ctranslate2", problem, "", fix) from None
    return ctranslate2


def _convert(model: LanguageModel, folder: Path, precision: Precision) -> None:
    from ctranslate2.converters import TransformersConverter

    class Converter(TransformersConverter):  # type: ignore[misc]
        def load_model(self, *positional: Any, **named: Any) -> Any:
            return _as_expected(super().load_model(*positional, **named))

    with tempfile.TemporaryDirectory() as saved, new_folder(folder) as part, quiet():
        model.save(Path(saved) / "model")
        try:
            Converter(str(Path(saved) / "model")).convert(str(part), quantization=precision, force=True)
        except (ValueError, NotImplementedError, KeyError, AttributeError) as error:
            problem = f"CTranslate2 cannot convert a {model.model.config.model_type} model ({error})"
            raise ModelError("backend ctranslate2", problem[:300], WANTED, NEXT_STEP) from None


def _as_expected(model: Any) -> Any:
    """A model whose configuration has the keys that CTranslate2 reads, those of older versions of transformers."""
    config = model.config
    if config.model_type in SCALES:  # CTranslate2 reads it as: are the decoder's outputs scaled?
        config.tie_word_embeddings = getattr(config, "scale_decoder_outputs", False)
    if config.model_type == "bart":
        config.normalize_before = False
    return model


def _device() -> str:
    """CTranslate2 runs on CPUs and NVIDIA GPUs."""
    return "cuda" if device_for().type == "cuda" else "cpu"


def _open(opener: Any, folder: Path, precision: Precision) -> Any:
    try:
        with keeping_threads():
            return opener(
                str(folder),
                device=_device(),
                compute_type=precision,
                inter_threads=torch.get_num_threads(),
                intra_threads=1,
            )
    except (RuntimeError, ValueError) as error:
        problem = f"the converted model cannot be opened ({error})"
        raise ModelError(
            str(folder), problem, "a sound one", f"delete the folder, and it is made again; or {NEXT_STEP}"
        ) from None
