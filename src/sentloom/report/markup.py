"""HTML that escapes by itself: any text put into an element is escaped unless it was made by `element`."""

from collections.abc import Iterable
from html import escape

VOID = ("meta",)


class Markup(str):
    """Text that is HTML already."""


def element(tag: str, *children: str, **attributes: object) -> Markup:
    """One element. An attribute `class_` becomes class, `data_label` data-label; one that is None is left out."""
    start = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    if tag in VOID:
        return Markup(f"<{tag}{start}>")
    return Markup(f"<{tag}{start}>{join(children)}</{tag}>")


def join(children: Iterable[str]) -> Markup:
    """Pieces behind each other, each escaped unless it is markup."""
    return Markup("".join(one if isinstance(one, Markup) else escape(one) for one in children))
