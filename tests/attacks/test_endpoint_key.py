"""The key of an endpoint: no proxy reads it, and an endpoint that repeats it brings it into no file and no output."""

import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.attacks.endpoints import KEY, SECRET, arguments, contents, texts
from tests.writing.chat_server import Handler, chat_server, default_text

PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
PASSWORD = "proxy-password-4711"
STRETCH = 8  # characters

pytestmark = pytest.mark.usefixtures("_environment")


@pytest.fixture
def _environment(monkeypatch):
    """A key, and no proxies but those that a test names."""
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv(KEY, SECRET)


class Proxy:
    """Tunnels for CONNECT and answers anything else itself; everything that it reads is recorded."""

    def __init__(self) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://user:{PASSWORD}@127.0.0.1:{self.socket.getsockname()[1]}"
        self.read = b""

    def serve(self) -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=self.handle, args=self.socket.accept()[:1], daemon=True).start()

    def handle(self, client: socket.socket) -> None:
        with client:
            self.answer(client)

    def answer(self, client: socket.socket) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            head += client.recv(1 << 16)
        self.read += head
        method, target, _ = head.split(b" ", 2)
        if method != b"CONNECT":
            client.sendall(b"HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n")
            return
        host, port = target.decode().rsplit(":", 1)
        with socket.create_connection((host, int(port))) as server:
            client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            back = threading.Thread(target=self.pass_on, args=(server, client), daemon=True)
            back.start()
            self.pass_on(client, server)
            back.join()

    def pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while part := source.recv(1 << 16):
                self.read += part
                sink.sendall(part)
            sink.shutdown(socket.SHUT_WR)


@contextmanager
def proxy() -> Iterator[Proxy]:
    one = Proxy()
    threading.Thread(target=one.serve, daemon=True).start()
    try:
        yield one
    finally:
        one.socket.close()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory) -> Path:
    if not shutil.which("openssl"):
        pytest.skip("openssl is not installed")
    path = tmp_path_factory.mktemp("tls") / "server.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", path, "-out", f"{path}.crt"],
        check=True, capture_output=True,
    )  # fmt: skip
    path.write_text(path.read_text() + Path(f"{path}.crt").read_text())
    return path


def assert_secret(folder: Path, *said: str, secret: str = SECRET) -> None:
    width = min(len(secret), STRETCH)
    stretches = {secret[at : at + width] for at in range(len(secret) - width + 1)}
    assert [stretch for stretch in stretches for text in (*contents(folder), *said) if stretch in text] == []


@pytest.mark.parametrize("names", [["http_proxy", "HTTP_PROXY"], ["all_proxy", "ALL_PROXY"]])
def test_plain_http_does_not_go_through_a_proxy(sentloom, tmp_path, monkeypatch, names):
    with chat_server() as server, proxy() as between:
        for name in names:
            monkeypatch.setenv(name, between.url)
        done = sentloom(*arguments(tmp_path, server.url))
    assert done.returncode == 0, done.stderr
    assert between.read == b""
    assert {headers["Authorization"] for headers in server.headers} == {f"Bearer {SECRET}"}


@pytest.mark.parametrize("name", ["HTTPS_PROXY", "all_proxy"])
def test_https_goes_through_a_proxy_that_cannot_read_it(sentloom, tmp_path, monkeypatch, certificate, name):
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with chat_server(tls=tls) as server, proxy() as between:
        monkeypatch.setenv(name, between.url)
        done = sentloom(*arguments(tmp_path, server.url))
    assert done.returncode == 0, done.stderr
    assert between.read.startswith(b"CONNECT 127.0.0.1:")
    assert {headers["Authorization"] for headers in server.headers} == {f"Bearer {SECRET}"}
    assert_secret(tmp_path, between.read.decode("latin-1"), done.stdout, done.stderr)
    assert_secret(tmp_path, done.stdout, done.stderr, secret=PASSWORD)


@pytest.mark.parametrize("scheme", ["socks5", "ftp"])
def test_a_proxy_that_cannot_be_used_is_refused_without_its_password(sentloom, tmp_path, monkeypatch, scheme):
    monkeypatch.setenv("all_proxy", f"{scheme}://user:{PASSWORD}@127.0.0.1:9")
    done = sentloom(*arguments(tmp_path, "https://127.0.0.1:9/v1"))
    assert done.returncode == 2, done.stderr
    assert "a proxy or a file of certificates" in done.stderr
    assert_secret(tmp_path, done.stdout, done.stderr, secret=PASSWORD)


def test_a_password_file_adds_no_credentials(sentloom, tmp_path, monkeypatch):
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password other\n")
    (tmp_path / ".netrc").chmod(0o600)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    monkeypatch.delenv(KEY)
    with chat_server() as server:
        assert sentloom(*arguments(tmp_path, server.url)).returncode == 0
    assert not any("Authorization" in headers for headers in server.headers)


def echoing(secret: str) -> Callable[[dict[str, Any]], Any]:
    """Answers that repeat the key, whole and in parts, also ones that are only joined by reading the answer."""
    at = len(secret) // 2
    forms = [
        f"your key is {secret}, thanks",
        f"a part of it: {secret[1:-1]}{secret[2:]}",
        f"{secret[:at]}<think>well</think>{secret[at:]}",
        [{"type": "text", "text": secret[:at]}, {"type": "text", "text": secret[at:]}],
        f'"Entailment: {secret}"',
    ]
    return lambda body: forms[body["seed"] % len(forms)] if body["seed"] else default_text(body)


@pytest.mark.parametrize("secret", [SECRET, "s3cr3t"])
def test_an_endpoint_that_repeats_the_key_brings_it_into_no_file(sentloom, tmp_path, monkeypatch, secret):
    monkeypatch.setenv(KEY, secret)

    def refusing(handler: Handler) -> None:
        said = {"error": f"{'x' * 170} {secret} {secret[1:]}"}
        handler.reply(said, 401, X_Key=secret, Set_Cookie=f"key={secret}")

    def busy(handler: Handler) -> None:
        handler.reply({"error": secret}, 503, Retry_After=secret)

    with chat_server(answer=echoing(secret), faults=[busy, *[None] * 8, *[refusing] * 8]) as server:
        refused = sentloom(*arguments(tmp_path, server.url))
        server.faults.clear()
        done = sentloom(*arguments(tmp_path, server.url))
    assert (refused.returncode, done.returncode) == (2, 0), refused.stderr + done.stderr
    assert "it answered 401" in refused.stderr
    assert {headers["Authorization"] for headers in server.headers} == {f"Bearer {secret}"}
    assert sum("***" in text for text in texts(tmp_path)) > 6
    assert_secret(tmp_path, *(done.stdout + refused.stdout, done.stderr + refused.stderr), secret=secret)


@pytest.mark.parametrize("secret", [f"{SECRET}\n", f"{SECRET} ", f"{SECRET}ä"])
def test_a_key_that_no_header_can_carry_is_refused_and_not_shown(sentloom, tmp_path, monkeypatch, secret):
    monkeypatch.setenv(KEY, secret)
    done = sentloom(*arguments(tmp_path, "http://127.0.0.1:9/v1"))
    assert done.returncode == 2
    assert "has spaces, line breaks or characters beyond ASCII" in done.stderr
    assert_secret(tmp_path, done.stdout, done.stderr)


@pytest.mark.parametrize("address", ["https://127.0.0.1:99999/v1", "https:///v1", "http://[::1/v1", "https://a:b/v1"])
def test_an_address_that_is_none_is_refused(sentloom, tmp_path, address):
    done = sentloom(*arguments(tmp_path, address))
    assert (done.returncode, "no valid host or port" in done.stderr) == (2, True), done.stderr
    assert SECRET not in done.stderr
