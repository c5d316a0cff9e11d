"""Which columns of a source mean what: as the user says, or as their names say."""

import difflib
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, NoReturn, TypeVar, assert_never

from sentloom.data.limits import SHOWN_LENGTH, listed, shown
from sentloom.data.shapes import (
    CLASS_NAMES,
    CLICKED,
    COLUMNS,
    COUNT,
    COUNT_NAMES,
    COUPLES,
    KNOWN_NAMES,
    LABEL_NAMES,
    LIKELY_CLASSES,
    LIKELY_TEXTS,
    NEGATIVE_NAME,
    SCORE_NAMES,
    TEXT_NAMES,
    TITLE,
    Kind,
    Shape,
    form_of,
    squash,
)
from sentloom.errors import InputError, option

Columns = Annotated[  # for each role a name, a number from 1, or a list of label columns
    Mapping[str, str | int | Sequence[str | int]] | str | None,
    "a dict of roles and column names",
    'pass {"anchor": "title", "positive": "body"}',
]


class UnclearColumns(InputError):
    """The names of the columns do not say what the rows are."""


UNDERSTOOD = (
    "a column of texts (text, sentence), or two columns that belong together (question and answer, title and body, "
    "premise and hypothesis, source and target)"
)

SHOWN_CHOICES = 5
SEARCHED_NAMES = 100  # columns compared with the known names for suggestions

Choice = TypeVar("Choice", int, tuple[int, int])


@dataclass(frozen=True)
class Layout:
    """Which columns of a source fill which canonical columns. Positions count from 0."""

    shape: Shape
    names: tuple[str, ...]
    roles: Mapping[str, tuple[int, ...]]  # only `negatives` may have several
    kept: Mapping[str, int]
    guessed: bool = False  # from names that are less clear

    @property
    def used(self) -> dict[str, str]:
        """Canonical column -> the source's own name for it."""
        return {role: ", ".join(self.names[at] for at in positions) for role, positions in self.roles.items()}

    @property
    def positions(self) -> list[int]:
        """The positions of all columns that are read."""
        return sorted({at for positions in self.roles.values() for at in positions} | set(self.kept.values()))

    @property
    def ignored(self) -> tuple[str, ...]:
        """The names of the columns that are not read."""
        used = set(self.positions)
        return tuple(name for at, name in enumerate(self.names) if at not in used)


EVERY = ("*",)


@dataclass(frozen=True)
class ShapeRequest:
    """What the caller asked for; None and () mean: infer it from the header. `keep` may be EVERY other column."""

    shape: Shape | None = None
    columns: Mapping[str, str | int] | None = None
    keep: tuple[str, ...] = ()
    quoted: bool | None = None  # whether the cells of a tsv file may be quoted

    @property
    def options(self) -> tuple[str, ...]:
        """Shape and columns as options of a command."""
        shape = ("--shape", str(self.shape)) if self.shape else ()
        columns = ",".join(f"{role}={column}" for role, column in (self.columns or {}).items())
        return (*shape, "--columns", columns) if columns else shape

    @property
    def named(self) -> tuple[str | int, ...]:
        """The columns that are asked for."""
        return (*(self.columns or {}).values(), *self.keep)

    @property
    def by_number(self) -> bool:
        """Whether columns are given by number, which means that the file has no header."""
        return any(isinstance(column, int) for column in (self.columns or {}).values())


def parse_columns(text: str) -> dict[str, str | int]:
    """Parse `anchor=title,positive=body`, or `anchor=1,positive=3` for a file without a header."""
    columns: dict[str, str | int] = {}
    for part in text.split(","):
        role, equals, name = (field.strip() for field in part.partition("="))
        if not (role and equals and name) or role in columns:
            problem = f"cannot parse {part!r} in {text!r}"
            raise InputError(option("columns"), problem, "role=column, each role once", _columns_example())
        columns[role] = _name_or_number(name)
    return columns


def _name_or_number(name: str) -> str | int:
    return int(name) if name.isascii() and name.isdigit() else name


def one_label_each(columns: Mapping[str, str | int] | None) -> list[Mapping[str, str | int] | None]:
    """Return the columns once for each of several label columns, as in `text=message,label=intent+team`."""
    names = str((columns or {}).get("label", "")).split("+")
    if columns is None or len(names) < 2 or not all(name.strip() for name in names):
        return [columns]
    return [{**columns, "label": _name_or_number(name.strip())} for name in names]


def as_columns(columns: Columns) -> Mapping[str, str | int] | None:
    """Return columns as a mapping from roles; a string is parsed as the command's option."""
    if isinstance(columns, str):
        return parse_columns(columns)
    if columns is None:
        return None
    return {role: name if isinstance(name, str | int) else "+".join(map(str, name)) for role, name in columns.items()}


def shape_of_roles(roles: Sequence[str]) -> Shape:
    """Return the shape that has exactly these roles; `negative`, `negative_1` ... mean `negatives`.

    Texts may have a `title` as well, which is kept beside them.
    """
    canonical = {_canonical(role) for role in roles}
    if canonical == {"text", TITLE}:
        return Shape.TEXTS
    for shape, names in COLUMNS.items():
        if canonical == set(names):
            return shape
    known = [role for names in COLUMNS.values() for role in names]
    hint = _nearest([role for role in roles if _canonical(role) not in known], known)
    shapes = "; ".join(",".join(names) for names in COLUMNS.values())
    problem = f"no shape has exactly the roles {', '.join(roles)}"
    raise InputError(option("columns"), problem, f"the roles of one shape: {shapes}", hint + _columns_example())


def layout_of(where: str, names: Sequence[str], is_nli: Callable[[int], bool], request: ShapeRequest) -> Layout:
    """Return the layout of a source with these column names; `is_nli` says if a column's first cell is an NLI word.

    Columns in the request are used as given. Otherwise the names decide, with one safety rule: two sentence columns
    with a label or score are never positive pairs. They are NLI if the first label is an NLI word (entailment,
    neutral ...), and scored pairs otherwise.
    """
    header = _Header(where, tuple(names), form_of(request.shape).expected if request.shape else UNDERSTOOD)
    if request.columns is not None:
        shape = shape_of_roles(list(request.columns))
        roles = header.asked_roles(shape, request.columns)
    else:
        shape = request.shape or header.shape(is_nli)
        roles = header.roles(shape)
    if request.shape not in (None, shape):
        problem = f"these are the roles of {shape}"
        raise InputError(option("columns"), problem, f"the roles of {request.shape}", "drop one of the two options")
    used = {at for positions in roles.values() for at in positions}
    if request.keep == EVERY:
        kept = {_free(name, roles): at for at, name in enumerate(header.names) if at not in used}
    else:
        kept = {name: at for name in request.keep if name not in roles and (at := header.position(name)) is not None}
    if TITLE in roles:
        (kept[TITLE],) = roles.pop(TITLE)
    if shape is Shape.PAIRS and squash(header.names[roles["positive"][0]]) in CLICKED:
        kept |= dict.fromkeys([COUNT], at) if (at := header.count()) is not None else {}
    return Layout(shape, header.names, roles, kept, request.columns is None and header.is_guess(roles))


def _free(name: str, taken: Container[str]) -> str:
    """A name that no other column has."""
    return name if name not in taken else _free(f"{name}_2", taken)


def _columns_example() -> str:
    return f"map the columns yourself, for example {option('columns', 'anchor=title,positive=body')}"


def _canonical(role: str) -> str:
    return "negatives" if NEGATIVE_NAME.fullmatch(squash(role)) else role


def _nearest(names: Sequence[str], known: Sequence[str]) -> str:
    """Return a question about the first name that resembles a known one, or an empty string."""
    for name in names[:SEARCHED_NAMES]:
        close = difflib.get_close_matches(squash(name)[:SHOWN_LENGTH], known, n=1, cutoff=0.75)
        if close and close[0] != squash(name):
            return f"did you mean {close[0]!r} instead of {shown(name)!r}? If not, "
    return ""


@dataclass(frozen=True)
class _Header:
    """The column names of one source, and what can be inferred from them."""

    where: str
    names: tuple[str, ...]
    expected: str

    def position(self, name: str) -> int | None:
        """Find a column by its exact or its normalised name; None if it is missing or ambiguous."""
        for form in (str, squash):
            if len(places := [at for at, own in enumerate(self.names) if form(own) == form(name)]) == 1:
                return places[0]
        return None

    def count(self) -> int | None:
        """The column that says how often something was clicked."""
        return next(iter(self._named(COUNT_NAMES)), None)

    def is_guess(self, roles: Mapping[str, tuple[int, ...]]) -> bool:
        """Whether a role was filled by a name that is less clear."""
        likely = (*LIKELY_TEXTS, *LIKELY_CLASSES)
        return any(squash(self.names[at]) in likely for positions in roles.values() for at in positions)

    def asked_roles(self, shape: Shape, columns: Mapping[str, str | int]) -> dict[str, tuple[int, ...]]:
        """Return the columns that the caller mapped to the roles of a shape, by name or by number from 1."""
        roles: dict[str, tuple[int, ...]] = dict.fromkeys(COLUMNS[shape], ())
        for role, column in columns.items():
            at = column - 1 if isinstance(column, int) else self.position(column)
            if at is None or not 0 <= at < len(self.names):
                hint = _nearest([str(column)], [squash(name) for name in self.names])
                problem = f"{self._missing(column)} among {self._list()}"
                raise InputError(self.where, problem, "", hint + _columns_example())
            roles[_canonical(role)] = (*roles.get(_canonical(role), ()), at)
        return roles

    def shape(self, is_nli: Callable[[int], bool]) -> Shape:
        """Infer the shape from the names."""
        couples = {couple: shape for shape in COUPLES for couple in self._couples(shape)}
        if not couples:
            return Shape.CLASSIFICATION if self._classes() else Shape.TEXTS
        pair_shape = couples[self._only(list(couples), "pair of sentence columns")]
        negatives, scores, labels = self._negatives(), self._named(SCORE_NAMES), self._named(LABEL_NAMES)
        if negatives and (scores or labels):
            self._refuse("there are both negatives and a label or score")
        if negatives:
            return Shape.TRIPLETS
        if pair_shape is Shape.NLI or (labels and not scores and is_nli(labels[0])):
            return Shape.NLI
        return Shape.SCORED_PAIRS if scores or labels else pair_shape

    def roles(self, shape: Shape) -> dict[str, tuple[int, ...]]:
        """Return the columns that fill the roles of a shape, by their names."""
        form = form_of(shape)
        if form.sides == 1:
            sides = [self._only(self._named(TEXT_NAMES) or self._named(LIKELY_TEXTS), "text column")]
        else:
            own = self._couples(shape) or [couple for other in COUPLES for couple in self._couples(other)]
            sides = list(self._only(own, "pair of sentence columns"))
        positions = iter(sides)
        return {
            role: (next(positions),) if kind is Kind.TEXT else self._beside(kind) for role, kind in form.columns.items()
        }

    def _beside(self, kind: Literal[Kind.NEGATIVES, Kind.SCORE, Kind.LABEL, Kind.NLI_LABEL]) -> tuple[int, ...]:
        """Return the columns of what rows have besides their sentences."""
        match kind:
            case Kind.NEGATIVES:
                return tuple(self._negatives()) or self._refuse("there is no column of negatives")
            case Kind.SCORE:
                return (self._only(self._named(SCORE_NAMES) or self._named(LABEL_NAMES), "score column"),)
            case Kind.LABEL:
                return (self._only(self._classes(), "label column"),)
            case Kind.NLI_LABEL:
                return (self._only(self._named(LABEL_NAMES), "label column"),)
            case _:
                assert_never(kind)

    def _classes(self) -> list[int]:
        return self._named(CLASS_NAMES) or self._named(LIKELY_CLASSES)

    def _named(self, known: Sequence[str]) -> list[int]:
        return [at for at, name in enumerate(self.names) if squash(name) in known]

    def _negatives(self) -> list[int]:
        return [at for at, name in enumerate(self.names) if NEGATIVE_NAME.fullmatch(squash(name))]

    def _couples(self, shape: Shape) -> list[tuple[int, int]]:
        families = COUPLES.get(shape, COUPLES[Shape.PAIRS])
        few = SHOWN_CHOICES  # per side: two pairs are already too many
        return [
            (i, j) for lefts, rights in families for i in self._named(lefts)[:few] for j in self._named(rights)[:few]
        ]

    def _only(self, choices: Sequence[Choice], role: str) -> Choice:
        """Return the only choice for a role, or refuse the header."""
        if not choices:
            self._refuse(f"there is no {role}")
        if len(choices) > 1:
            more = " ..." if len(choices) > SHOWN_CHOICES else ""
            self._refuse(
                f"there is more than one {role}: {' or '.join(map(self._show, choices[:SHOWN_CHOICES]))}{more}"
            )
        return choices[0]

    def _show(self, choice: int | tuple[int, int]) -> str:
        return ",".join(self.names[at] for at in ((choice,) if isinstance(choice, int) else choice))

    def _missing(self, column: str | int) -> str:
        several = isinstance(column, str) and any(squash(name) == squash(column) for name in self.names)
        return f"there is more than one column {column!r}" if several else f"there is no column {column!r}"

    def _list(self) -> str:
        return f"the columns {listed([repr(name) for name in self.names])}"

    def _refuse(self, why: str) -> NoReturn:
        hint = _nearest(self.names, KNOWN_NAMES)
        fix = f"{hint}{_columns_example()}. All names that are understood are in docs/data.md"
        raise UnclearColumns(self.where, f"{why} among {self._list()}", self.expected, fix)
