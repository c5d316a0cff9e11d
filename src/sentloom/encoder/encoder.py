"""The sentence encoder: loaded, trained, evaluated and saved as one object."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeAlias, TypeGuard, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from sentloom.arguments import typed
from sentloom.data.sentences import Texts, as_texts, distinct, texts_at
from sentloom.encoder.backbone import Backbone
from sentloom.encoder.device import Device, Precision, device_for, pack_workers
from sentloom.encoder.heads import Projection, check_cut, cut, normalize, trained_dimensions
from sentloom.encoder.packing import Pack, pack, plan, plan_side_by_side
from sentloom.encoder.pooling import DECODER_FIRST, MASK_TOKEN, Pooling, pool, pool_at
from sentloom.encoder.system import VECTORS_ALONE, System
from sentloom.encoder.templates import check_template
from sentloom.encoder.tokens import EXPECTED, FIX, Prompts, Role, Tokens, check_prompts, prompt_for
from sentloom.errors import InputError, ModelError
from sentloom.progress import progress

if TYPE_CHECKING:
    from sentloom.export.export import Exported

Vectors = NDArray[np.float32]
TextsLike: TypeAlias = Any  # strings in any sequence, an Arrow column, a Series, a Dataset or DataFrame of texts
COUNT, DEFAULT, AT_LEAST_ONE = "an integer of 1 or more", "leave it out for the default", "ask for at least one text"
TOKENS_PER_PACK = 2048  # on a CPU: the activations of a pack roughly fit the caches
TOKENS_PER_PACK_ELSEWHERE = 32_768
PUBLIC = (  # what `dir` and completion show, without the names of nn.Module
    *("load", "save", "export", "copy", "encode", "similarity", "search", "tokenize", "fingerprint"),
    *("dimension", "dimensions", "device", "precision", "pooling", "prompts", "system"),
)


class Hit(NamedTuple):
    """A text that `search` found: its position among the texts, its score, and the text.

    The score is the cosine with the query; for a model whose search is a system (docs/search.md), from 0 to 1.
    """

    row: int
    score: float
    text: str


class Encoder(nn.Module):
    """Maps texts to vectors with a backbone, a pooling, projection heads and prompts.

    >>> from sentloom import Encoder
    >>> encoder = Encoder.load("embedded")
    >>> encoder.encode(["Where is the canteen?", "The canteen is on the ground floor."]).shape
    (2, 384)
    """

    window = 4096  # texts tokenised and sorted by length together
    tokens_per_pack: int | None = None  # None: as many as suit the device

    def __init__(
        self,
        backbone: Backbone,
        tokens: Tokens,
        *,
        pooling: Pooling,
        heads: Sequence[Projection] = (),
        unit_length: bool = True,
        prompts: Prompts | None = None,
    ) -> None:
        super().__init__()
        check_prompts(prompts or {})
        self.backbone, self.tokens = backbone, tokens
        self.prompts: Prompts = dict(prompts or {})
        self.check(pooling)
        self.pooling, self.unit_length = pooling, unit_length
        self.heads = nn.Sequential(*heads)
        self.precision: Precision = backbone.precision_for()  # of inference; training follows the Accelerator
        self.system: System = VECTORS_ALONE  # what `search` runs besides vectors
        self.known_fingerprint: str | None = None  # of an encoder that is shared, and so never changes

    def __new__(cls, *parts: object, **_: object) -> "Encoder":
        """Refuse a name, and point to `load`."""
        if parts and isinstance(parts[0], str | Path):
            name = str(parts[0])
            raise InputError("Encoder", f"found the name {name!r}", "its parts", f"write Encoder.load({name!r})")
        return super().__new__(cls)

    @classmethod
    @typed
    def load(
        cls,
        name: str | Path,
        *,
        revision: str | None = None,
        pooling: str | None = None,
        prompts: Annotated[Prompts | None, EXPECTED, FIX] = None,
        max_length: int | None = None,
        device: Device | None = None,
        precision: Precision | None = None,
        backend: str = "torch",
    ) -> "Encoder":
        """Load `embedded`, a folder, or a hub name (owner/name@revision); arguments override saved settings.

        Folders that `export` wrote are loaded too. `device` is cpu, cuda, cuda:1, mps ..., by default a GPU if there is
        one. With the `precision` bf16, matrix products run in bfloat16, which is faster on recent GPUs; weights and
        vectors stay float32. On a CPU, the `backend` may also be onnx, another that `sentloom encode --help` lists, or
        auto: the fastest of them that is proven to give the same vectors or, with 8-bit weights, to lose at most half a
        point of score, measured once per machine.
        """
        from sentloom.encoder.loading import load

        where = device_for(device)
        parts = load(name, revision=revision, pooling=pooling, prompts=prompts, max_length=max_length)
        system = parts.pop("system")
        encoder = cls(**parts)
        encoder.system = system
        encoder.precision = encoder.backbone.precision_for(precision)
        encoder = encoder.to(where).eval()
        if backend == "torch":
            return encoder
        from sentloom.export.backends import with_backend

        return with_backend(encoder, backend)

    @typed
    def save(self, folder: str | Path, *, golden: bool = True) -> None:
        """Write a sentence-transformers folder, atomically replacing an existing model.

        It has golden vectors of 117 texts, with which exports and servers are compared, unless `golden` is False.
        """
        from sentloom.encoder.saving import save

        save(self, Path(folder), golden)

    @typed
    def export(
        self,
        folder: str | Path,
        to: str = "onnx",
        *,
        against: Sequence[str] = (),
        data: str | Path | None = None,
        accept_loss: float | None = None,
    ) -> "Exported":
        """Write the encoder in another form: onnx, static or another that `sentloom export --help` lists.

        The folder gets its name only if its vectors are proven to be this encoder's; otherwise a ModelError says why.
        `Encoder.load(folder)` runs it. 8-bit and static forms give other vectors: they are written only if they lose at
        most `accept_loss` points on the sets or files `against`, from the folder `data`; by default on the validation
        rows of a fit, else on everyday triplets.
        """
        from sentloom.export.export import export

        place = None if data is None else Path(data)
        return export(self, to, Path(folder), against=against, data=place, accept_loss=accept_loss)

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return next(self.parameters()).device

    def __dir__(self) -> list[str]:
        return sorted(PUBLIC)

    def __repr__(self) -> str:
        parts = (f"{self.dimension} dimensions", f"pooling {self.pooling}", f"at most {self.tokens.max_length} tokens")
        return f"Encoder({type(self.backbone.model).__name__}, {', '.join(parts)}, {self.precision} on {self.device})"

    def check(self, pooling: Pooling) -> None:
        """Refuse a pooling that the model or its prompts do not support."""
        self.backbone.check(pooling)
        if pooling.how == MASK_TOKEN:
            check_template(self.tokens, self.prompts)

    @property
    def dimension(self) -> int:
        """The number of dimensions of a vector."""
        last = self.heads[-1] if len(self.heads) else None
        return last.linear.out_features if isinstance(last, Projection) else self.backbone.width

    @property
    def dimensions(self) -> tuple[int, ...]:
        """The dimensions that vectors can be truncated to, largest first; empty if it was not trained for any."""
        return trained_dimensions(self)

    def forward(self, ids: Sequence[Sequence[int]], *, raw: bool = False) -> Tensor:
        """Compute vectors (n, dimension) of tokenised sentences, with gradients; `raw` skips normalisation."""
        return self._by_pack(ids, partial(self._vectors, raw=raw))

    def layers(self, ids: Sequence[Sequence[int]], how: str, layers: Sequence[int]) -> Tensor:
        """Pool each layer separately, without heads: (n, layers, d)."""

        def pooled(packed: Pack) -> Tensor:
            states = self.backbone.states(packed, layers)
            return torch.stack([pool(how, state, packed.runs) for state in states], dim=1)

        return self._by_pack(ids, pooled)

    def token_states(self, ids: Sequence[Sequence[int]], places: Sequence[NDArray[np.int64]]) -> Tensor:
        """Return the last states (k, d) of the tokens at the given positions of each sentence, in sentence order."""
        states, owners = [], []
        for rows in self.packs(ids):
            packed = pack(ids, rows, self.device)
            starts = np.cumsum([0, *packed.lengths[:-1]])
            at = np.concatenate([start + places[row] for start, row in zip(starts, rows, strict=True)])
            states.append(self.backbone.states(packed)[0][torch.from_numpy(at).to(self.device)])
            owners.append(np.repeat(rows, [len(places[row]) for row in rows]))
        order = np.argsort(np.concatenate(owners), kind="stable")
        return torch.cat(states)[torch.from_numpy(order).to(self.device)]

    def copy(self) -> "Encoder":
        """Return a copy with its own weights; the tokenizer, which never changes, is shared."""
        copied = deepcopy(self, {id(self.tokens): self.tokens})
        copied.known_fingerprint = None  # its weights may change
        return copied

    def tokenize(self, texts: Sequence[str], role: Role = "symmetric") -> list[list[int]]:
        """Return token ids with prompts and special tokens, truncated to the maximum length."""
        return self.tokens(texts, prompt_for(self.prompts, role))

    @overload
    def encode(
        self,
        texts: TextsLike,
        *,
        role: Role = ...,
        batch_size: int | None = ...,
        out: Vectors | None = ...,
        dimension: int | None = ...,
        show_progress: bool = ...,
        normalize_embeddings: bool = ...,
        convert_to_numpy: Literal[True] = ...,
        convert_to_tensor: Literal[False] = ...,
        show_progress_bar: bool | None = ...,
    ) -> Vectors: ...
    @overload
    def encode(
        self,
        texts: TextsLike,
        *,
        role: Role = ...,
        batch_size: int | None = ...,
        out: Vectors | None = ...,
        dimension: int | None = ...,
        show_progress: bool = ...,
        normalize_embeddings: bool = ...,
        convert_to_numpy: bool = ...,
        convert_to_tensor: bool = ...,
        show_progress_bar: bool | None = ...,
    ) -> Vectors | Tensor | list[Tensor]: ...
    @typed
    def encode(
        self,
        texts: TextsLike,
        *,
        role: Role = "symmetric",
        batch_size: Annotated[int | None, COUNT, DEFAULT] = None,
        out: Vectors | None = None,
        dimension: int | None = None,
        show_progress: bool = False,
        normalize_embeddings: bool = False,
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        show_progress_bar: bool | None = None,
    ) -> Vectors | Tensor | list[Tensor]:
        """Encode texts as float32 vectors (n, dimension), or a single string as one vector (dimension,).

        Each distinct text is encoded once. Empty and blank texts get a finite vector, texts beyond the maximum length
        are truncated, and None or numbers are refused with their position. `out` receives the vectors; with a
        memory-mapped array, memory use does not grow with n.

        Sentences run in batches of about equal numbers of tokens. `batch_size` is the most sentences in one batch:
        lower it if memory is short. It changes no vector beyond rounding, because no sentence sees the others.

        `dimension` cuts vectors to their first dimensions, for a model that was trained for it (see `dimensions`).

        The last four are as in sentence-transformers: `normalize_embeddings` scales vectors to unit length, which most
        models do anyway; `convert_to_tensor` returns a tensor on the encoder's device; without `convert_to_numpy`, the
        vectors of several texts are a list of tensors; `show_progress_bar` is another name for `show_progress`.
        """
        single = isinstance(texts, str)
        sequence = as_texts([texts] if isinstance(texts, str) else texts)
        if batch_size is not None and batch_size < 1:
            raise InputError("batch_size", f"found {batch_size}", COUNT, DEFAULT)
        if dimension is not None:
            check_cut(self, dimension)
        shape = (len(sequence), self.dimension)
        vectors: Vectors = np.empty(shape, np.float32) if out is None else out
        if vectors.shape != shape or vectors.dtype != np.float32:
            problem = f"the array is {vectors.dtype} of shape {vectors.shape}"
            raise InputError("out", problem, f"float32 of shape {shape}", "pass such an array")
        shown = show_progress if show_progress_bar is None else show_progress_bar
        for _ in self.fill(vectors, sequence, role=role, batch_size=batch_size, show_progress=shown):
            pass
        vectors = vectors if dimension is None else cut(vectors, dimension, self.unit_length)
        if normalize_embeddings:
            vectors[:] = _unit(vectors)
        if convert_to_numpy and not convert_to_tensor:
            return vectors[0] if single else vectors
        tensor = torch.from_numpy(vectors).to(self.device)
        return tensor[0] if single else tensor if convert_to_tensor else list(tensor)

    @typed
    def similarity(self, a: TextsLike, b: TextsLike) -> Any:
        """Compute the cosine of every text in `a` with every text in `b`, (len(a), len(b)); a number for two strings.

        Vectors returned by `encode` are accepted instead of texts.

        >>> encoder = Encoder.load("embedded")
        >>> near, far = encoder.similarity("How do I get in?", ["Where is the entrance?", "Prices rose."])
        >>> bool(near > far)
        True
        """
        left, right = (_unit(side if _are_vectors(side) else self.encode(side)) for side in (a, b))
        if left.shape[-1] != right.shape[-1]:
            problem = f"the vectors have {left.shape[-1]} and {right.shape[-1]} dimensions"
            raise InputError("similarity", problem, "as many in both", "encode both with this model")
        cosines = left @ right.T
        return cosines.item() if cosines.ndim == 0 else cosines

    @overload
    def search(self, queries: str, texts: TextsLike, k: int = ..., *, vectors: Vectors | None = ...) -> list[Hit]: ...
    @overload
    def search(
        self, queries: TextsLike, texts: TextsLike, k: int = ..., *, vectors: Vectors | None = ...
    ) -> list[list[Hit]]: ...
    @typed
    def search(
        self,
        queries: TextsLike,
        texts: TextsLike,
        k: Annotated[int, COUNT, AT_LEAST_ONE] = 5,
        *,
        vectors: Vectors | None = None,
    ) -> list[Hit] | list[list[Hit]]:
        """Find the `k` texts closest to each query, the closest first; one list for a single string.

        If `fit` proved that words or a re-ranker add to the vectors, they are part of this search: see `system`.
        Queries and texts get the model's prompts for queries and documents. Of pairs, such as a Dataset of questions
        and answers, the answers are searched. To reuse the vectors of the texts in several searches, pass
        `encode(texts, role="document")` as `vectors`.

        >>> encoder = Encoder.load("embedded")
        >>> hits = encoder.search("opening hours", ["We close at six.", "Dogs are welcome."], k=1)
        >>> hits[0].row, hits[0].text
        (0, 'We close at six.')
        """
        if k < 1:
            raise InputError("k", f"found {k}", COUNT, AT_LEAST_ONE)
        if isinstance(texts, str):
            raise InputError("texts", "found a single string", "the texts to search in", "pass a list of strings")
        sequence = as_texts(texts, answers=True)
        documents = self.encode(sequence, role="document") if vectors is None else vectors
        if len(documents) != len(sequence):
            problem = f"there are {len(documents):,} vectors for {len(sequence):,} texts"
            raise InputError("vectors", problem, "one per text", "encode these texts")
        if np.shape(documents)[1:] != (self.dimension,):
            problem = f"they have the shape {np.shape(documents)}"
            raise InputError("vectors", problem, f"{self.dimension} dimensions", "encode the texts with this model")
        from sentloom.search.system import Index

        asked = as_texts([queries] if isinstance(queries, str) else queries)
        asked_texts = [str(query) for query in asked]
        index = Index(sequence, documents, self.system)
        rows, scores = index.find(asked_texts, self.encode(asked, role="query"), k)
        hits = [
            [Hit(row, score, str(sequence[row])) for row, score in zip(*of_query, strict=True)]
            for of_query in zip(rows.tolist(), scores.tolist(), strict=True)
        ]
        return hits[0] if isinstance(queries, str) else hits

    def fill(
        self,
        out: Vectors,
        texts: Texts,
        *,
        role: Role = "symmetric",
        done: int = 0,
        batch_size: int | None = None,
        show_progress: bool = False,
    ) -> Iterator[NDArray[np.int64]]:
        """Write the vectors of texts into `out` window by window, and yield the rows of each window once written.

        A window has `self.window` distinct texts; `done` is the number of distinct texts already in `out`.
        """
        rows, first_of_row = distinct(texts)
        with (
            progress("encoding", len(rows) - done, "sentences", show_progress) as advance,
            self._inference() as executor,
        ):
            for start in range(done, len(rows), self.window):
                window = rows[start : start + self.window]
                ids = self.tokenize(texts_at(texts, window), role)
                packs = self.packs(ids, batch_size, side_by_side=True)
                for places, vectors in executor.map(partial(self._encode, ids), packs):
                    _check_finite(vectors, texts, window[places])
                    out[window[places]] = vectors
                    advance(len(places))
                yield window
        copy_repeated(out, first_of_row, self.window)

    def fingerprint(self) -> str:
        """Hash everything vectors depend on: configuration, weights, tokenizer, pooling, heads, prompts, length."""
        if self.known_fingerprint:
            return self.known_fingerprint
        digest = hashlib.sha256(self.backbone.model.config.to_json_string().encode())
        for name, tensor in sorted(self.state_dict().items()):
            digest.update(f"{name} {tuple(tensor.shape)}".encode())
            digest.update(tensor.detach().cpu().flatten().view(torch.uint8).numpy())
        prompts = sorted((role, prompt.prefix, prompt.suffix) for role, prompt in self.prompts.items())
        settings: tuple[Any, ...] = (
            str(self.pooling), str(self.heads), self.unit_length, self.tokens.max_length, prompts
        )  # fmt: skip
        if self.precision != "fp32":
            settings = (*settings, self.precision)
        digest.update(f"{settings} {self.tokens.tokenizer.backend_tokenizer.to_str()}".encode())
        return digest.hexdigest()

    def _by_pack(self, ids: Sequence[Sequence[int]], run: Callable[[Pack], Tensor]) -> Tensor:
        """Run sentences pack by pack and restore the original order of the rows."""
        packs = [pack(ids, rows, self.device) for rows in self.packs(ids)]
        order = np.argsort(np.concatenate([packed.rows for packed in packs]))
        return torch.cat([run(packed) for packed in packs])[torch.from_numpy(order).to(self.device)]

    def packs(
        self, ids: Sequence[Sequence[int]], batch_size: int | None = None, *, side_by_side: bool = False
    ) -> list[NDArray[np.int64]]:
        """Plan which sentences run together: up to a number of tokens, and of sentences if that is given.

        `side_by_side`: several packs run at the same time, on a CPU.
        """
        cpu = self.device.type == "cpu"
        budget = self.tokens_per_pack or (TOKENS_PER_PACK if cpu else TOKENS_PER_PACK_ELSEWHERE)
        lengths = np.array([len(sentence) for sentence in ids], dtype=np.int64)
        if side_by_side and cpu and self.backbone.packed:
            packs = plan_side_by_side(lengths, budget)
        else:
            packs = plan(lengths, budget, self.backbone.shortest)
        if batch_size is None:
            return packs
        return [part for rows in packs for part in np.split(rows, range(batch_size, len(rows), batch_size))]

    def _vectors(self, packed: Pack, raw: bool = False) -> Tensor:
        """Compute the vectors (n, dimension) of a pack, in packed order."""
        if self.pooling.how == DECODER_FIRST:
            pooled = self.backbone.decoder_first(packed)
        else:
            layers = self.backbone.states(packed, self.pooling.layers)
            states = layers[0] if len(layers) == 1 else torch.stack(layers).mean(dim=0)
            if self.pooling.how == MASK_TOKEN:
                pooled = pool_at(states, packed.ids[0] == self.tokens.mask, packed.runs)
            else:
                pooled = pool(self.pooling.how, states, packed.runs)
        vectors: Tensor = self.heads(pooled)
        return normalize(vectors) if self.unit_length and not raw else vectors

    def _encode(self, ids: Sequence[Sequence[int]], rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], Vectors]:
        with self.computing():
            return rows, self._vectors(pack(ids, rows, self.device)).float().cpu().numpy()

    @contextmanager
    def computing(self) -> Iterator[None]:
        """Inference in the chosen precision, in the thread that calls it."""
        bf16 = self.precision == "bf16"
        with torch.inference_mode(), torch.autocast(self.device.type, torch.bfloat16, enabled=bf16):
            yield

    @contextmanager
    def _inference(self) -> Iterator[Executor]:
        """Switch to evaluation mode and yield workers that encode packs."""
        was_training = self.training
        if was_training:
            self.eval()
        try:
            with pack_workers(self.device) as executor:
                yield executor
        finally:
            if was_training:
                self.train()


def copy_repeated(vectors: Vectors, first_of_row: NDArray[np.int64], window: int) -> None:
    """Copy to every row with a repeated text the vector of the first row with it, some rows at a time."""
    repeated = np.flatnonzero(first_of_row != np.arange(len(first_of_row)))
    for start in range(0, len(repeated), window):
        part = repeated[start : start + window]
        vectors[part] = vectors[first_of_row[part]]


def _are_vectors(value: Any) -> TypeGuard[Vectors]:
    """Whether these are vectors: an array of texts has no numbers."""
    return isinstance(value, np.ndarray) and np.issubdtype(value.dtype, np.floating)


def _unit(vectors: Vectors) -> Vectors:
    """Scale vectors to unit length; a zero vector stays zero."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1), np.float32)


def _check_finite(vectors: Vectors, texts: Texts, rows: NDArray[np.int64]) -> None:
    """Refuse vectors with NaN or infinite values; the error names the first such text."""
    if not np.isfinite(vectors).all():
        row = rows[np.flatnonzero(~np.isfinite(vectors).all(axis=1))[:1]]
        text = f"{texts_at(texts, row)[0][:60]!r} (text {row[0] + 1})"
        problem = f"the vector of {text} has NaN or infinite values"
        raise ModelError("encode", problem, "finite numbers", "check the model: its weights may be damaged")
