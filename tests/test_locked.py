"""locked.txt has a version of all that the tests need, and those that constraints.txt asks for."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def pins(name):
    lines = (ROOT / name).read_text("utf-8").splitlines()
    return dict(_named(line).split("==") for line in lines if line and not line.startswith("#"))


def _named(requirement):
    return requirement.lower().replace("_", "-")


def test_versions_are_those_of_the_constraints():
    locked, wanted = pins("locked.txt"), pins("constraints.txt")
    assert {name: locked[name] for name in wanted.keys() & locked.keys()} == {
        name: version for name, version in wanted.items() if name in locked
    }
    assert "torch" in locked


def test_every_direct_dependency_is_there():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras, seen = ["dev"], set()
    needed = list(project["dependencies"])
    while extras:
        one = extras.pop()
        seen.add(one)
        for requirement in project["optional-dependencies"][one]:
            if own := re.match(r"sentloom\[(.*)\]", requirement):
                extras += [extra for extra in own[1].split(",") if extra not in seen]
            else:
                needed.append(requirement)
    names = {_named(re.match(r"[\w.-]+", requirement)[0]) for requirement in needed}
    assert names - pins("locked.txt").keys() == set()
