"""Words put before and behind a sentence, by the role that it plays."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from sentloom.errors import InputError

Role = Literal["symmetric", "query", "document"]
ROLES: tuple[Role, ...] = get_args(Role)


@dataclass(frozen=True)
class Prompt:
    """A prefix and a suffix, exactly as they are joined to the sentence: give the spaces you want."""

    prefix: str = ""
    suffix: str = ""


Prompts = Mapping[Role, Prompt]


def prompt_for(prompts: Prompts, role: Role) -> Prompt:
    """The prompt of a role. Query and document fall back to the symmetric one."""
    if role not in ROLES:
        raise InputError("role", repr(role), f"one of {', '.join(ROLES)}", "correct the role")
    return prompts.get(role, prompts.get("symmetric", Prompt()))


def check_prompts(prompts: Prompts) -> None:
    """Refuse roles that nobody asks for, and prompts that are bare strings."""
    for role, prompt in prompts.items():
        if role not in ROLES or not isinstance(prompt, Prompt):
            wanted = f"a Prompt for one of {', '.join(ROLES)}"
            raise InputError("prompts", f"{role!r}: {prompt!r}", wanted, 'write {"query": Prompt(prefix="...")}')


def shared_suffix(prompts: Prompts) -> str | None:
    """The suffix of every role ("" for none), or None where roles differ: a tokenizer can carry only one."""
    suffixes = {prompt_for(prompts, role).suffix for role in ROLES}
    return suffixes.pop() if len(suffixes) == 1 else None
