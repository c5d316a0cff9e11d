"""Suites by name, and lookup of tasks: a suite, one of its sets, or the user's own file.

Installed packages offer suites through the entry point group `sentloom.suites`, which names mappings of them.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path

from sentloom.data.corpus.opening import open_data
from sentloom.data.in_memory import Data
from sentloom.data.inputs import split_name
from sentloom.errors import InputError, MissingPart, SentloomError
from sentloom.evaluation.set_source import SetSource, UnlikePublished
from sentloom.evaluation.task import Average, Suite, Task
from sentloom.evaluation.user_tasks import QUESTION, TaskKind, data_task, own_task
from sentloom.plugins import Registry

SUITES: Mapping[str, Suite] = Registry[Suite]("sentloom.suites")
OWN = re.compile(rf"(?P<kind>{'|'.join(TaskKind)}):(?P<file>.+)")


@dataclass(frozen=True)
class LoadedSuite:
    """The tasks of a suite whose data is available, and why the other sets are left out.

    They are `missing`, or `unlike` the published ones. `absent` is the reason if there is no task at all.
    """

    name: str
    tasks: tuple[Task, ...]
    missing: Mapping[str, str]
    averages: tuple[Average, ...]
    absent: SentloomError | None = None
    unlike: Mapping[str, str] = field(default_factory=dict)


Absences = tuple[type[SentloomError], ...]  # errors for which a published set is left out


def load_suites(suites: Sequence[Data], origin: SetSource, *, partly: bool = False) -> list[LoadedSuite]:
    """Load suites, sets and files by name, or data in memory.

    It is an error if all sets of a suite are missing, or one has other counts than the published set; with `partly`,
    such sets are left out, and it is an error only if nothing at all can be loaded.
    """
    if origin.folder is not None and not origin.folder.is_dir():
        expected = "a data folder (sts/STS12.tsv, senteval/MR.tsv ...) or SentEval's own"
        raise InputError(str(origin.folder), "no such folder", expected, "check the path")
    absences = (MissingPart, UnlikePublished) if partly else (MissingPart,)
    loaded = [_load(suite, origin, absences) for suite in suites]
    absent = [suite.absent for suite in loaded if suite.absent]
    if absent and not (partly and len(absent) < len(loaded)):
        raise absent[0]
    return _numbered(loaded, suites)


def _numbered(loaded: Sequence[LoadedSuite], sources: Sequence[Data]) -> list[LoadedSuite]:
    """Data in memory with the same name get numbers: scores are reported by name."""
    seen: Counter[str] = Counter()
    names = Counter(suite.name for suite in loaded)
    numbered = []
    for suite, source in zip(loaded, sources, strict=True):
        if names[suite.name] > 1 and not isinstance(source, str | Path):
            seen[suite.name] += 1
            name = f"{suite.name} {seen[suite.name]}"
            suite = replace(suite, name=name, tasks=tuple(replace(task, name=name) for task in suite.tasks))
        numbered.append(suite)
    return numbered


def find_task(name: str, origin: SetSource) -> Task:
    """Find one task by name: `STS-B/dev`, `transfer/MR`, `MR`, or the user's own file, also as `retrieval:FILE`."""
    if own := OWN.fullmatch(name):
        return own_task(TaskKind(own["kind"]), own["file"], origin)
    if published := _published(name):
        suite, part = published
        return suite.load(part, origin)
    if Path(split_name(name)[0]).exists() or name.startswith("embedded"):
        return own_task(None, name, origin)
    if re.search(r"\s", name) and not re.fullmatch(r"\.\w+", Path(name).suffix):
        problem = f"{name[:60]!r} is a text, and texts alone cannot be scored"
        expected = "pairs, triplets, scored pairs or labelled texts, or the names of suites, sets or files"
        raise InputError("evaluation", problem, expected, "say what belongs to each text: [(question, answer), ...]")
    known = [known for suite in SUITES.values() for part in _sets(suite) for known in (f"{suite.name}/{part}", part)]
    near = get_close_matches(name, [*SUITES, *known], n=1, cutoff=0.5)
    expected = (
        f"a suite ({', '.join(SUITES)}), one of its sets, or a file: retrieval:FILE, pairs:FILE, classification:FILE"
    )
    raise InputError(
        "evaluation",
        f"there is no set or file {name!r}",
        expected,
        f"did you mean {near[0]!r}?" if near else "choose one of these",
    )


def find_measure(name: str, score: str, origin: SetSource) -> Task | None:
    """The task of a measure that a suite has besides the scores of its sets; None if it has no such measure."""
    if (published := _published(name)) and (build := published[0].measures.get(score)):
        return build(published[1], origin)
    return None


def split_score(name: str) -> tuple[str, str | None]:
    """A set and which of its scores is meant, as in `STS-B@pearson`; None: its main score."""
    before, _, score = name.rpartition("@")
    return (before, score) if before and is_set(before) else (name, None)


def is_set(name: str) -> bool:
    """Whether a name is the name of a set in a suite, not of a file."""
    return OWN.fullmatch(name) is None and _published(name) is not None


def _published(name: str) -> tuple[Suite, str] | None:
    asked = name.casefold().removesuffix("/test")
    for suite in SUITES.values():
        for part in _sets(suite):
            if asked in (f"{suite.name}/{part}".casefold(), part.casefold()):
                return suite, part
    return None


def _sets(suite: Suite) -> tuple[str, ...]:
    """List the sets that can be requested alone, including dev parts, which are in no suite and no average."""
    return (*suite.sets, *suite.parts)


def _load_suite(suite: Suite, origin: SetSource, absences: Absences) -> LoadedSuite:
    tasks, errors = [], dict[str, SentloomError]()
    for name in suite.sets:
        try:
            tasks.append(suite.load(name, origin))
        except absences as error:
            errors[name] = error
    there = [error for error in errors.values() if isinstance(error, UnlikePublished)]  # these files can be corrected
    absent = None if tasks else [*errors.values(), *there][-1]
    return LoadedSuite(suite.name, tuple(tasks), _missing(errors), suite.averages, absent, _unlike(errors))


def _load_set(name: str, origin: SetSource, absences: Absences) -> LoadedSuite:
    """A published set may be missing; a file of the user's may not."""
    try:
        return LoadedSuite(name, (find_task(name, origin),), {}, ())
    except absences as error:
        if not is_set(name):
            raise
        return LoadedSuite(name, (), _missing({name: error}), (), error, _unlike({name: error}))


def _missing(errors: Mapping[str, SentloomError]) -> dict[str, str]:
    return {name: error.problem for name, error in errors.items() if not isinstance(error, UnlikePublished)}


def _unlike(errors: Mapping[str, SentloomError]) -> dict[str, str]:
    """The sets with other counts than the published ones, what was expected and what to do."""
    unlike = {name: error for name, error in errors.items() if isinstance(error, UnlikePublished)}
    return {name: f"{error.problem} instead of {error.expected}: {error.fix}" for name, error in unlike.items()}


def _load(suite: Data, origin: SetSource, absences: Absences) -> LoadedSuite:
    if isinstance(suite, str) and suite in SUITES:
        return _load_suite(SUITES[suite], origin, absences)
    if isinstance(suite, str | Path):
        return _load_set(str(suite), origin, absences)
    data = open_data(suite, keep=(QUESTION,))
    name = data.files[0]
    return LoadedSuite(name, (data_task(None, name, name, data, origin.probe),), {}, ())
