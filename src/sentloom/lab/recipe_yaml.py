"""YAML to plain values, each with its line; faults are collected, and reported once and together."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import yaml

from sentloom.engine.plan import RESOLVERS
from sentloom.engine.schema import Keys, show
from sentloom.errors import Problem, RecipeError, option

MOST_BYTES = 1_000_000
DEEPEST = 12  # levels of a file
LONGEST_INT = 18  # digits that fit 64 bits; longer ones stay text, which is then refused as a number


class Spot(NamedTuple):
    """Where a value was written: a file with line and key, or the command line."""

    file: str
    place: str


class Faults:
    """The faults so far; a fault of the common part appears in every variant and is reported once."""

    def __init__(self) -> None:
        self.problems: dict[Problem, None] = {}

    def add(self, spot: Spot, problem: str, expected: str) -> None:
        """Record a fault."""
        self.problems[Problem(*spot, problem, expected)] = None

    def stop(self) -> None:
        """Raise all of them, those of the file first, in line order."""
        if self.problems:
            raise RecipeError(sorted(self.problems, key=_line), self._fix())

    def refuse(self, spot: Spot, problem: str, expected: str, fix: str = "") -> NoReturn:
        """For a fault after which nothing can be read."""
        self.add(spot, problem, expected)
        raise RecipeError(sorted(self.problems, key=_line), fix or self._fix())

    def _fix(self) -> str:
        overrides = [_is_override(problem) for problem in self.problems]
        places = ["the recipe"] * (not all(overrides)) + [f"the override ({option('set')})"] * any(overrides)
        return f"correct {' and '.join(places)}"


def _is_override(problem: Problem) -> bool:
    return problem.file.split(" ")[0] == option("set")


def _line(problem: Problem) -> float:
    number = re.match(r"line (\d+)", problem.place)
    return math.inf if _is_override(problem) else int(number[1]) if number else 0


@dataclass(frozen=True)
class Tree:
    """Plain values, and where each was written."""

    value: Any
    spots: Mapping[Keys, Spot]

    def spot(self, keys: Keys) -> Spot:
        """The place of a value, otherwise of the nearest one around it."""
        return next(self.spots[keys[:n]] for n in range(len(keys), -1, -1) if keys[:n] in self.spots)

    def below(self, keys: Keys) -> "Tree":
        """A part as a tree of its own."""
        value = self.value
        for key in keys:
            value = value[key]
        under = {spot[len(keys) :]: place for spot, place in self.spots.items() if spot[: len(keys)] == keys}
        return Tree(value, {(): self.spot(keys)} | under)

    def put(self, keys: Keys, other: "Tree") -> "Tree":
        """The tree with another part at these keys; a KeyError if a value on the way has no keys."""
        value = _replaced(self.value, keys, other.value)
        spots = {keys[:n]: other.spots[()] for n in range(len(keys))}
        spots |= {spot: place for spot, place in self.spots.items() if spot[: len(keys)] != keys}
        return Tree(value, spots | {keys + spot: place for spot, place in other.spots.items()})


def _replaced(value: Any, keys: Keys, new: Any) -> Any:
    if not keys:
        return new
    key, *rest = keys
    if isinstance(key, int):
        return [*value[:key], _replaced(value[key], tuple(rest), new), *value[key + 1 :]]
    if not isinstance(value, dict | None):
        raise KeyError(key)
    return {**(value or {}), key: _replaced((value or {}).get(key), tuple(rest), new)}


def read_file(path: Path, faults: Faults) -> Tree:
    """The values of a YAML file."""
    whole = Spot(str(path), "")
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        text = content.decode("utf-8-sig") if len(content) <= MOST_BYTES else None
    except UnicodeDecodeError as error:
        faults.refuse(whole, f"byte {error.start + 1} and those after it are not UTF-8", "a YAML file in UTF-8")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        faults.refuse(whole, f"the file cannot be read ({why})", "a YAML file", "check the path")
    if text is None:
        faults.refuse(whole, "the file is larger than 1 MB", "a recipe, which is small")
    return parse(text, str(path), faults)


def parse(text: str, file: str, faults: Faults) -> Tree:
    """The values of a YAML text; a RecipeError if it is not YAML."""
    reading = _Reading(file, faults)
    try:
        node = yaml.compose(text, Loader=_Loader)
        value = None if node is None else reading.value(node, (), "", 1)
        return Tree(value, {**reading.spots, (): Spot(file, "")})
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}" if error.problem_mark else ""
        faults.refuse(Spot(file, line), _not_yaml(error.context, error.problem), "plain YAML")
    except yaml.YAMLError as error:
        faults.refuse(Spot(file, ""), _not_yaml(str(error).splitlines()[0]), "plain YAML")
    except RecursionError:
        faults.refuse(Spot(file, ""), "the values are nested too deeply to be read", f"at most {DEEPEST} levels")


def _not_yaml(*said: str | None) -> str:
    return f"this cannot be read as YAML ({' '.join(filter(None, said))})"


class _Loader(yaml.SafeLoader):
    """Only composes nodes: tags build nothing, and aliases are refused."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - as yaml declares it

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event: yaml.Event = self.peek_event()  # type: ignore[no-untyped-call]
        tag = getattr(event, "tag", None)
        if isinstance(event, yaml.AliasEvent) or tag is not None:
            what = f"the tag {tag} is not allowed" if tag else "an alias is not allowed"
            raise yaml.MarkedYAMLError(problem=what, problem_mark=event.start_mark)  # type: ignore[arg-type]
        return super().compose_node(parent, index)


for _tag, _form, _starts in RESOLVERS:
    _Loader.add_implicit_resolver(_tag, re.compile(f"^(?:{_form})$"), _starts)


@dataclass
class _Reading:
    """From nodes to plain values: texts, numbers, lists, and mappings whose keys are texts."""

    file: str
    faults: Faults
    spots: dict[Keys, Spot] = field(default_factory=dict)

    def value(self, node: yaml.Node, keys: Keys, shown: str, line: int) -> Any:
        place = f"line {line}, {shown}" if shown else f"line {line}"
        spot = self.spots[keys] = Spot(self.file, place)
        if len(keys) > DEEPEST:
            self.faults.add(spot, "the values are nested too deeply", f"at most {DEEPEST} levels")
            return None
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, keys, shown)
        if isinstance(node, yaml.SequenceNode):
            return [
                self.value(item, (*keys, at), _joined(shown, _item_name(item, at)), item.start_mark.line + 1)
                for at, item in enumerate(node.value)
            ]
        return self.scalar(node, spot)

    def mapping(self, node: yaml.MappingNode, keys: Keys, shown: str) -> dict[str, Any]:
        values: dict[str, Any] = {}
        first: dict[str, int] = {}
        for key, item in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                self.faults.add(Spot(self.file, f"line {line}"), "this key is not text", "text as the key")
                continue
            name = self.text(key.value, Spot(self.file, f"line {line}"))
            if name in values:
                spot = Spot(self.file, f"line {line}, {_joined(shown, name)}")
                self.faults.add(
                    spot, f"the key {show(name)} appears again (first on line {first[name]})", "each key once"
                )
                continue
            first[name] = line
            values[name] = self.value(item, (*keys, name), _joined(shown, name), line)
        return values

    def scalar(self, node: yaml.Node, spot: Spot) -> Any:
        kind, text = node.tag.rpartition(":")[2], str(node.value)
        if kind == "null":
            return None
        if kind == "bool":
            return text.casefold() == "true"
        if kind == "int" and len(text) <= LONGEST_INT:
            return int(text)
        if kind == "float" and math.isfinite(float(text)):
            return float(text)
        return self.text(text, spot)

    def text(self, text: str, spot: Spot) -> str:
        clean = re.sub("[\0\ud800-\udfff]", "", text)
        if clean != text:
            self.faults.add(
                spot, "the text contains a NUL character or half of a surrogate pair", "text that UTF-8 can hold"
            )
        return clean


def _joined(shown: str, name: str) -> str:
    return f"{shown}.{name}" if shown else name


def _item_name(node: yaml.Node, at: int) -> str:
    """The name of a list item in messages: a stage's name or method, otherwise its number from 1."""
    if isinstance(node, yaml.MappingNode):
        named = {key.value: item.value for key, item in node.value if isinstance(item, yaml.ScalarNode)}
        return str(named.get("name") or named.get("method") or at + 1)
    return str(at + 1)


def without(values: Mapping[str, Any] | None, *keys: str) -> dict[str, Any]:
    """A mapping, or None, without some keys."""
    return {key: value for key, value in (values or {}).items() if key not in keys}
