"""The API key and the addresses that need one."""

import pytest

from sentloom.errors import InputError
from sentloom.serving.service import Key, check_address, is_local_name, read_key

SECRET = "0123456789abcdef0123"


def test_a_key_matches_itself_only():
    key = Key(SECRET)
    assert key.matches(f"Bearer {SECRET}".encode())
    assert key.matches(f"bearer  {SECRET} ".encode())
    for wrong in ("", SECRET, f"Bearer {SECRET[:-1]}", f"Bearer {SECRET}x", f"Basic {SECRET}", "Bearer", "Bearer \xff"):
        assert not key.matches(wrong.encode("latin-1")), wrong


def test_the_key_itself_is_not_kept():
    assert SECRET not in repr(vars(Key(SECRET)))


def test_a_file_comes_before_the_environment(tmp_path):
    file = tmp_path / "key"
    file.write_text(f"{SECRET}\n")
    assert read_key(None, {}) is None
    assert read_key(None, {"SENTLOOM_API_KEY": "f" * 20}).matches(b"Bearer " + b"f" * 20)
    assert read_key(file, {"SENTLOOM_API_KEY": "f" * 20}).matches(f"Bearer {SECRET}".encode())


@pytest.mark.parametrize("key", ["", "short", "with spaces in the middle", "ünïcödé-characters-here"])
def test_unusable_keys_are_refused_and_not_shown(key):
    with pytest.raises(InputError) as error:
        read_key(None, {"SENTLOOM_API_KEY": key})
    assert "openssl rand" in str(error.value)
    assert not key or key not in str(error.value)


def test_a_key_file_that_is_missing_is_an_error(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_key(tmp_path / "nowhere", {"SENTLOOM_API_KEY": SECRET})


def test_other_machines_need_a_key():
    for host in ("127.0.0.1", "localhost", "::1", "127.0.0.5"):
        check_address(host, None)
    for host in ("0.0.0.0", "::", "192.0.2.1"):
        check_address(host, Key(SECRET))
        with pytest.raises(InputError, match="no API key is set"):
            check_address(host, None)


@pytest.mark.parametrize(
    ("host", "local"),
    [
        *[(name, True) for name in ("localhost", "localhost:8080", "LOCALHOST:1", "127.0.0.1:80", "[::1]", "[::1]:80")],
        *[(name, False) for name in ("", "example.com", "localhost.example.com:80", "127.0.0.1.example.com", "::1")],
    ],
)
def test_names_of_this_machine(host, local):
    assert is_local_name(host) == local
