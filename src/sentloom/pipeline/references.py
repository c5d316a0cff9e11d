"""`stage:NAME`, or `stage:NAME/PART`: the artifact of an earlier stage of the same plan."""

PREFIX = "stage:"


def named_stage(value: str) -> str | None:
    """The stage that a value names; None if it is a file, a folder or a name of another kind."""
    return value.removeprefix(PREFIX).partition("/")[0] if value.startswith(PREFIX) else None


def named_part(value: str) -> str:
    """The part of a stage's dataset that a value names: "" or "pairs"."""
    return value.partition("/")[2]
