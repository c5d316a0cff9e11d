"""Prompts: text put before and after a sentence, depending on its role."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from sentloom.errors import InputError

Role = Literal["symmetric", "query", "document"]
ROLES: tuple[Role, ...] = get_args(Role)
EXPECTED, FIX = f"a Prompt for one of {', '.join(ROLES)}", 'write {"query": Prompt(prefix="...")}'


@dataclass(frozen=True)
class Prompt:
    """A prefix and a suffix, joined to the sentence as they are, so include the spaces you want.

    >>> from sentloom import Encoder
    >>> encoder = Encoder.load("embedded", prompts={"query": Prompt("search for: ")})
    >>> encoder.encode(["red shoes"], role="query").shape
    (1, 384)
    """

    prefix: str = ""
    suffix: str = ""


Prompts = Mapping[Role, Prompt]


def prompt_for(prompts: Prompts, role: Role) -> Prompt:
    """Return the prompt of a role; query and document fall back to the symmetric one."""
    if role not in ROLES:
        raise InputError("role", f"{role!r} is unknown", f"one of {', '.join(ROLES)}", "correct the role")
    return prompts.get(role, prompts.get("symmetric", Prompt()))


def is_asymmetric(prompts: Prompts) -> bool:
    """Whether queries and documents have different prompts."""
    return prompt_for(prompts, "query") != prompt_for(prompts, "document")


def check_prompts(prompts: Prompts) -> None:
    """Refuse unknown roles, and plain strings instead of prompts."""
    for role, prompt in prompts.items():
        if role not in ROLES or not isinstance(prompt, Prompt) or not _is_text(prompt):
            raise InputError("prompts", f"{role!r}: {prompt!r} is not valid", EXPECTED, FIX)


def _is_text(prompt: Prompt) -> bool:
    return isinstance(prompt.prefix, str) and isinstance(prompt.suffix, str)


def shared_suffix(prompts: Prompts) -> str | None:
    """Return the suffix that all roles share ("" for none), or None if they differ: a tokenizer can store only one."""
    suffixes = {prompt_for(prompts, role).suffix for role in ROLES}
    return suffixes.pop() if len(suffixes) == 1 else None
