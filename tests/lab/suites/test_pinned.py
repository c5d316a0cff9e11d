"""Everything downloaded from the hub is pinned to a revision."""

import importlib
import pkgutil
import re

from sentloom.data.inputs import HUB_NAME
from sentloom.evaluation.set_source import SetPart
from sentloom.lab import suites
from sentloom.lab.suites.set_tables import SetTable

OWNED = re.compile(r"[\w.-]+/[\w.{}/-]+(@[\w.-]+)?:[\w{}+]+")


def texts_in(value):
    """Yield all strings inside a module's value: in parts, tables, mappings and lists."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, SetPart):
        yield value.hub
    elif isinstance(value, SetTable):
        yield from texts_in({**value.parts, **value.forums})
    elif isinstance(value, dict):
        yield from (text for part in value.values() for text in texts_in(part))
    elif isinstance(value, list | tuple):
        yield from (text for part in value for text in texts_in(part))


def hub_sources():
    owned = set()
    for module in pkgutil.iter_modules(suites.__path__, f"{suites.__name__}."):
        for name, value in vars(importlib.import_module(module.name)).items():
            if not name.startswith("__"):
                owned |= {text for text in texts_in(value) if OWNED.fullmatch(text)}
    return owned


def test_every_source_on_the_hub_has_a_full_revision():
    sources = hub_sources()
    assert len(sources) > 50
    unpinned = []
    for source in sources:
        plain = source.replace("{}", "x").partition("+")[0]
        match = HUB_NAME.fullmatch(plain)
        if match is None or re.fullmatch(r"[0-9a-f]{40}", match[3] or "") is None:
            unpinned.append(source)
    assert not unpinned
