"""Who may ask: the API key, and which addresses may be used without one."""

import hashlib
import hmac
import ipaddress
import os
import socket
from collections.abc import Mapping
from pathlib import Path

from sentloom.errors import InputError

VARIABLE = "SENTLOOM_API_KEY"
SHORTEST_KEY = 16
LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")


class Key:
    """An API key, of which only the SHA-256 is kept."""

    def __init__(self, key: str) -> None:
        self._digest = hashlib.sha256(key.encode()).digest()

    def matches(self, authorization: bytes) -> bool:
        """Whether this is the header `Bearer KEY`. The time it takes does not depend on what is right in it."""
        scheme, _, given = authorization.partition(b" ")
        same = hmac.compare_digest(hashlib.sha256(given.strip()).digest(), self._digest)
        return same and scheme.lower() == b"bearer"


def read_key(file: Path | None, environment: Mapping[str, str] = os.environ) -> Key | None:
    """The key in a file, or else in the environment; None if neither is given."""
    where, key = VARIABLE, environment.get(VARIABLE)
    if file is not None:
        where = str(file)
        try:
            key = file.read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(where, f"the key cannot be read: {error}", "a text file", "check the path") from None
    if key is None:
        return None
    if len(key) < SHORTEST_KEY or not key.isascii() or not key.isprintable() or " " in key:
        expected = f"at least {SHORTEST_KEY} printable ASCII characters without spaces"
        raise InputError(where, "the API key is not usable", expected, "create one with: openssl rand -hex 32")
    return Key(key)


def check_address(host: str, key: Key | None) -> None:
    """Refuse to listen beyond this machine without a key."""
    if key is None and not is_loopback(host):
        fix = f"set {VARIABLE} or --api-key-file, or leave out --host"
        raise InputError("--host", f"{host} can be reached from other machines, and no API key is set", "a key", fix)


def is_loopback(host: str) -> bool:
    """Whether every address of a host is this machine's own."""
    try:
        found = {ipaddress.ip_address(info[4][0]) for info in socket.getaddrinfo(host, None)}
    except OSError:
        raise InputError("--host", f"{host} has no address", "an address of this machine", "correct it") from None
    return all(address.is_loopback for address in found)


def is_local_name(host: str) -> bool:
    """Whether a Host header names this machine: another name may be a web page's, pointed here to read answers."""
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdigit() else host).lower() in LOCAL_NAMES
