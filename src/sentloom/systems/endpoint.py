"""An encoder behind an OpenAI-compatible endpoint, such as `sentloom serve`.

The key is read from the environment and only ever put into the request's header.
"""

import hashlib
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx2
import numpy as np

from sentloom.encoder.tokens import Role
from sentloom.errors import InputError
from sentloom.progress import progress
from sentloom.search.vectors import Vectors

KEY = "SENTLOOM_API_KEY"
LOCAL = ("localhost", "127.0.0.1", "::1")
BATCH = 64  # texts per request
ATTEMPTS, WAIT, PATIENCE = 4, 1.0, 120.0  # requests, seconds between two of them, seconds for an answer
BUSY = (429, 500, 502, 503, 504)
PROBES = ("Where is the canteen?", "Prices rose in the third quarter.", "Der Zug fährt um neun.", "42")
DIGITS = 3  # of the vectors of the probes, which say whether two endpoints give the same


def is_endpoint(name: str) -> bool:
    """Whether a name is an address."""
    return name.startswith(("https://", "http://"))


@dataclass(frozen=True)
class EndpointModel:
    """A model at an address, which ends with /v1."""

    url: str
    model: str
    takes_roles: bool  # whether it is sentloom's, which has prompts for queries and documents

    @classmethod
    def open(cls, name: str) -> "EndpointModel":
        """Ask which models there are: `https://host/v1#MODEL`, by default the first."""
        address, _, wanted = name.partition("#")
        url = address.rstrip("/")
        url = url if url.endswith("/v1") else f"{url}/v1"
        parts = urlsplit(url)
        if parts.scheme == "http" and parts.hostname not in LOCAL and os.environ.get(KEY):
            problem = f"the key in {KEY} would be sent to {parts.hostname} unencrypted"
            raise InputError(address, problem, "https://", f"use https, or unset {KEY}")
        models = _asked("GET", f"{url}/models").get("data") or []
        names = [str(model.get("id")) for model in models]
        if not names or (wanted and wanted not in names):
            problem = f"it has no model {wanted!r}" if wanted else "it names no model"
            raise InputError(
                address, problem, ", ".join(names[:10]) or "a model", "name it as in https://host/v1#MODEL"
            )
        chosen = models[names.index(wanted) if wanted else 0]
        return cls(url, str(chosen["id"]), chosen.get("owned_by") == "sentloom")

    def encode(self, texts: Sequence[str], *, role: Role = "symmetric", show_progress: bool = False) -> Vectors:
        """The vectors of texts, some texts per request."""
        parts = []
        with progress("encoding", len(texts), "sentences", show_progress) as advance:
            for start in range(0, len(texts), BATCH):
                body: dict[str, Any] = {"model": self.model, "input": list(texts[start : start + BATCH])}
                answer = _asked("POST", f"{self.url}/embeddings", body | ({"role": role} if self.takes_roles else {}))
                rows = sorted(answer.get("data") or [], key=lambda row: int(row["index"]))
                parts.append(np.array([row["embedding"] for row in rows], np.float32))
                advance(len(rows))
        return np.concatenate(parts) if parts else np.empty((0, 0), np.float32)

    def fingerprint(self) -> str:
        """Whether it still gives the same vectors, by a few texts: what is behind an address may change."""
        vectors = np.round(self.encode(PROBES), DIGITS) + 0.0  # no minus zero
        return f"endpoint {self.takes_roles} {hashlib.sha256(vectors.tobytes()).hexdigest()}"


def _asked(method: str, url: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """The JSON of an answer; a busy server is asked again."""
    headers = {"Authorization": f"Bearer {key}"} if (key := os.environ.get(KEY)) else {}
    why = ""
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(WAIT * 2 ** (attempt - 1))
        try:
            answer = httpx2.request(method, url, json=body, headers=headers, timeout=PATIENCE)
            why = f"it answered with status {answer.status_code}: {answer.text[:200]}"
            if answer.status_code == 200:
                content = answer.json()
                if isinstance(content, dict):
                    return content
                why = "its answer is not a JSON object"
            if answer.status_code not in BUSY:
                break
        except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
            why = f"it cannot be reached: {error or type(error).__name__}"
            if isinstance(error, httpx2.InvalidURL):
                break
    raise InputError(url, why, "an OpenAI-compatible endpoint", f"check the address, the server and {KEY}")
