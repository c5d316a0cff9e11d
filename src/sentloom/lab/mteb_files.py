"""Run tasks of the package mteb with our encoder, and write mteb's result files."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sentloom.encoder import Encoder
from sentloom.encoder.tokens import Role
from sentloom.errors import InputError, MissingPart, first_line
from sentloom.files import new_file
from sentloom.progress import progress
from sentloom.search.vectors import Vectors

# Names for several tasks. SentEval's transfer tasks are missing: mteb scores its similar tasks differently.
GROUPS = {"STS": ("STS12", "STS13", "STS14", "STS15", "STS16", "STSBenchmark", "SICK-R")}


def run_mteb(
    encoder: Encoder, names: Sequence[str], folder: Path, *, model: str = "encoder", show_progress: bool = False
) -> dict[str, float]:
    """Return the main scores (times 100) of mteb's tasks, by task; `STS` stands for the seven English STS tasks.

    mteb's result files are written to the folder in mteb's own layout; `model` is the encoder's name in them. A task
    that already has a file for the same weights and the same revision of its data is not run again.
    """
    return run_tasks(encoder, find_tasks(names), folder, model=model, show_progress=show_progress)


def find_tasks(names: Sequence[str]) -> list[Any]:
    """Find mteb's tasks by name, each once; a task composed of others is replaced by those."""
    expanded = dict.fromkeys(task for name in names for task in GROUPS.get(name, (name,)))
    tasks = [_find_task(name) for name in expanded]
    return [part for task in tasks for part in getattr(task.metadata, "tasks", (task,))]


def _find_task(name: str) -> Any:
    try:
        task = _mteb().get_task(name)
    except KeyError as error:  # it suggests the closest name
        fix = str(error.args[0]).removeprefix("KeyError: ")
        problem, expected = f"there is no task {name!r}", f"a task of mteb, or {', '.join(GROUPS)}"
        raise InputError("mteb", problem, expected, fix) from None
    if set(kinds := task.metadata.modalities) != {"text"}:
        raise InputError("mteb", f"{name} is a task of {' and '.join(kinds)}", "a task of text", "choose another task")
    return task


def run_tasks(
    encoder: Encoder, tasks: Sequence[Any], folder: Path, *, model: str = "encoder", show_progress: bool = False
) -> dict[str, float]:
    """Do the work of `run_mteb` for task objects, whose data may be loaded already."""
    wrapped = _Wrapped(encoder, model)
    meta, cache, scores = wrapped.mteb_model_meta, _mteb().ResultCache(folder), {}
    with progress("mteb", len(tasks), "tasks", show_progress) as advance:
        for task in tasks:
            name = task.metadata.name
            known = cache.load_task_result(name, meta)
            if known is None or not known.is_mergeable(task) or known.get_missing_evaluations(task):
                _write(cache.get_task_result_path(name, meta), _run(wrapped, task), meta)
            # Read from the file, with six digits: the same whether the task was run now or before.
            scores[name] = 100 * float(cache.load_task_result(name, meta).get_score())
            advance(1, name)
    return scores


class _Wrapped:
    """Wraps an encoder in mteb's encoder protocol."""

    def __init__(self, encoder: Encoder, model: str) -> None:
        from mteb.models import ModelMeta
        from mteb.models.model_meta import ScoringFunction

        self.encoder = encoder
        name = re.sub(r"[^\w.-]+", "-", Path(model).name).strip("-") or "encoder"
        facts = {
            "name": f"sentloom/{name}",  # mteb requires an owner before the name
            "revision": encoder.fingerprint()[:40],
            "n_parameters": sum(weights.numel() for weights in encoder.parameters()),
            "max_tokens": encoder.tokens.max_length,
            "embed_dim": encoder.dimension,
            "framework": ["PyTorch"],
            "similarity_fn_name": ScoringFunction.COSINE,
            "use_instructions": bool(encoder.prompts),
        }
        self.mteb_model_meta = ModelMeta.create_empty(facts)

    def encode(self, inputs: Iterable[Mapping[str, Any]], *, prompt_type: Any = None, **_: Any) -> Vectors:
        """Encode batches of texts; mteb's other arguments do not affect vectors."""
        role: Role = prompt_type.value if prompt_type else "symmetric"
        return self.encoder.encode([text for batch in inputs for text in batch["text"]], role=role)

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        from mteb.similarity_functions import cos_sim

        return cos_sim(embeddings1, embeddings2)

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        from mteb.similarity_functions import pairwise_cos_sim

        return pairwise_cos_sim(embeddings1, embeddings2)


def _mteb() -> Any:
    try:
        import mteb
    except ImportError as error:
        raise MissingPart(
            "mteb", "the package is not installed", "mteb 2.26 or later", 'pip install "sentloom[mteb]"'
        ) from error
    return mteb


def _run(wrapped: _Wrapped, task: Any) -> Any:
    """Run one task without mteb's own cache, which is not written atomically."""
    ours = not task.data_loaded
    if ours:
        _load(task)
    done = _mteb().evaluate(wrapped, task, cache=None, co2_tracker=False, show_progress_bar=False)
    if ours:
        task.unload_data()
    return done.task_results[0]


def _load(task: Any) -> None:
    try:
        task.load_data()
    except Exception as error:  # the package and the network raise errors of many types
        name, source = task.metadata.name, task.metadata.dataset["path"]
        raise MissingPart(
            name, f"the data cannot be downloaded ({first_line(error)})", f"{source} on the hub", "check the network"
        ) from error


def _write(path: Path, result: Any, meta: Any) -> None:
    with new_file(path.parent / "model_meta.json") as part:
        part.write_text(json.dumps(meta.to_dict(), default=str, indent=4), "utf-8")
    with new_file(path) as part:
        result.to_disk(part)
