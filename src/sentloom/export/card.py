"""The card of an exported folder: whose model it is, its licence, what was written and what that lost."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from sentloom.encoder.catalogue.places import entry_in
from sentloom.encoder.formats.registry import format_for
from sentloom.encoder.locate import HUB_NAME
from sentloom.encoder.model_files import find
from sentloom.errors import SentloomError
from sentloom.files import without_folders
from sentloom.markdown import fenced, plain, table

if TYPE_CHECKING:
    from sentloom.encoder import Encoder
    from sentloom.export.export import Exported

CARD = "README.md"
LARGEST = 1 << 20  # bytes of a model's own card
PARTS = re.compile(r"\A---\r?\n(?P<facts>.*?)\r?\n---\r?\n(?P<body>.*)\Z", re.DOTALL)
LICENCE = ("license", "license_name", "license_link")
OURS = "sentloom"  # the tag of cards that `fit` wrote
RESULTS = "\n## Results\n"  # where such a card stops being about the use of its own folder
SNAPSHOT = "models--"  # how the hub's cache calls the folder of a model: models--owner--name


@dataclass(frozen=True)
class Origin:
    """The model that was exported, as its own card describes it."""

    name: str  # on the hub, or of its folder
    on_hub: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict)  # the front matter of its card
    results: str = ""  # what its card says after its use, if `fit` wrote it

    @property
    def base(self) -> str | None:
        """What the hub calls the model, or else the model it was fitted from."""
        said = self.name if self.on_hub else self.facts.get("base_model")
        return said if isinstance(said, str) and HUB_NAME.fullmatch(said) else None


def origin_of(encoder: "Encoder") -> Origin:
    """Where an encoder was loaded from. A card that cannot be read says nothing."""
    folder = Path(encoder.backbone.model.config.name_or_path or "a model in memory")
    name, on_hub = _name(folder)
    try:
        file = find(folder, CARD)
        text = file.read_text("utf-8", "replace") if file and file.stat().st_size <= LARGEST else ""
        parts = PARTS.match(text)
        facts = yaml.safe_load(parts["facts"]) if parts else {}
    except (OSError, ValueError, RecursionError, SentloomError, yaml.YAMLError):
        return Origin(name, on_hub)
    if not parts or not isinstance(facts, dict):
        return Origin(name, on_hub)
    written_by_fit = OURS in (facts.get("tags") or ())
    return Origin(name, on_hub, facts, parts["body"].partition(RESULTS)[2].strip() if written_by_fit else "")


def _name(folder: Path) -> tuple[str, bool]:
    """The name of a model, and whether the hub knows it by that."""
    if entry := entry_in(folder):
        return entry.upstream, True
    cached = next((part for part in folder.parts if part.startswith(SNAPSHOT)), None)
    return (cached.removeprefix(SNAPSHOT).replace("--", "/"), True) if cached else (folder.name, False)


def export_card(encoder: "Encoder", done: "Exported") -> str:
    """The text of README.md."""
    origin, name = origin_of(encoder), plain(done.folder.name)
    use = f"from sentloom import Encoder\n\nmodel = Encoder.load({done.folder.name!r})\n"
    use += 'vectors = model.encode(["A first sentence.", "Another one."])'
    parts = [
        f"---\n{_front_matter(origin, done)}---",
        f"# {name}, exported to {done.to}",
        f"{plain(origin.name)} in another form ({done.to}), written by `sentloom export`. {_closeness(done)}",
        table(["", "the model", "this form"], _rows(done)),
        fenced(use, "python"),
        _rights(origin),
    ]
    if origin.results:
        parts += ["## The model before the export", "All below was measured before the export.", origin.results]
    return "\n\n".join(parts) + "\n"


def _front_matter(origin: Origin, done: "Exported") -> str:
    library = format_for(done.to).reader
    facts = {
        "library_name": library,
        "pipeline_tag": "sentence-similarity",
        "tags": list(dict.fromkeys([library, "sentence-similarity", "feature-extraction", OURS])),
        **{key: value for key in (*LICENCE, "language") if _is_plain(value := origin.facts.get(key))},
    }
    return yaml.safe_dump(facts | ({"base_model": origin.base} if origin.base else {}), sort_keys=False)


def _is_plain(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(item, str) for item in value))


def _closeness(done: "Exported") -> str:
    if done.agreement is None:
        return "It gives other vectors than the model: do not compare vectors of the two."
    cosines = f"mean cosine {done.agreement.mean:.6f}, the least {done.agreement.least:.6f}"
    return f"Its vectors were compared with the model's on texts of many kinds: {cosines}."


def _rows(done: "Exported") -> list[list[str]]:
    before, after = done.dimensions
    rows = [["dimensions", f"{before:,}", f"{after:,}"]]
    if done.score:
        measured = without_folders(done.score.measured, done.score.on)
        rows += [[measured, f"{done.score.before:.2f}", f"{done.score.after:.2f}"]]
        rows += [["points lost", "", f"{done.score.lost:.2f}"]]
    return rows


def _rights(origin: Origin) -> str:
    said = [value for key in LICENCE if isinstance(value := origin.facts.get(key), str)]
    lines = [f"Licence of {plain(origin.name)}: {plain(', '.join(said)) or 'its card names none'}."]
    if origin.base and origin.base != origin.name:
        lines.append(f"It was fine-tuned from {plain(origin.base)}.")
    return " ".join(lines)
