"""Requests of GenSE's two kinds, asked of a writer one kind at a time, with the answers in the order of the requests."""

from collections.abc import Sequence
from dataclasses import dataclass

from sentloom.writing.writer import NLI_KINDS, Kind, SourceText, Wording, Writer


@dataclass(frozen=True)
class Request:
    source: int
    text: str
    kind: Kind
    candidate: int


def texts_for(writer: Writer, requests: Sequence[Request], wording: Wording | None = None) -> list[str]:
    texts = {}
    for kind in NLI_KINDS:
        places = [place for place, request in enumerate(requests) if request.kind == kind]
        sources = [SourceText(requests[at].source, requests[at].text, requests[at].candidate) for at in places]
        written = writer.write(sources, kind, (wording or Wording()).prompt(kind))
        texts |= dict(zip(places, (answer.text for answer in written), strict=True))
    return [texts[place] for place in range(len(requests))]
