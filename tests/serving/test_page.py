"""The page: its text is safe to read here; what it does is tried in Chromium by `make faults`."""

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from importlib.resources import files

import pytest

from sentloom.serving.corpus import Corpus
from tests.encoder.small_models import SENTENCES
from tests.serving.test_server import serving

PAGE = files("sentloom.serving") / "page"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--virtual-time-budget=20000"),
)


def source(name):
    return (PAGE / name).read_text("utf-8")


class Elements(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))


@pytest.fixture(scope="module")
def elements():
    parser = Elements()
    parser.feed(source("index.html"))
    return parser.found


def test_texts_are_never_set_as_html():
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", source("page.js")
    )


def test_there_is_nothing_inline_that_the_policy_would_block(elements):
    assert not [tag for tag, given in elements if "style" in given or any(name.startswith("on") for name in given)]
    assert [given for tag, given in elements if tag == "script"] == [{"type": "module", "src": "page.js"}]
    assert not [tag for tag, _ in elements if tag == "style"]


def test_every_element_that_the_script_asks_for_exists(elements):
    ids = {given["id"] for _, given in elements if "id" in given}
    assert set(re.findall(r'\$\("([\w-]+)"\)', source("page.js"))) <= ids
    assert {given["href"][1:] for tag, given in elements if tag == "a" and given["href"].startswith("#")} <= ids


def test_every_control_has_a_label(elements):
    labelled = {given["for"] for tag, given in elements if tag == "label" and "for" in given}
    controls = [given for tag, given in elements if tag in ("input", "textarea")]
    assert all(given["id"] in labelled for given in controls)
    assert ("html", {"lang": "en"}) in elements
    assert all("aria-label" in given for tag, given in elements if tag == "canvas")
    headings = [given.get("aria-labelledby") for tag, given in elements if tag == "section"]
    assert all(headings)


@pytest.mark.long
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed: apt install chromium")
def test_the_page_searches_compares_and_draws_in_a_browser(make_service, encoder, tmp_path):
    texts = [f"{sentence} {at}" for sentence in SENTENCES for at in range(4)]
    vectors = {"small": encoder.encode(texts, role="document")}
    service = make_service(corpus=Corpus(texts, "line {}".format, vectors))
    with serving(service) as (port, _):
        url = f"http://127.0.0.1:{port}/?q=dogs"
        command = [CHROMIUM, *FLAGS, f"--user-data-dir={tmp_path}", "--window-size=1000,4000", "--dump-dom", url]
        page = subprocess.run(command, capture_output=True, text=True, timeout=120).stdout
    best = encoder.search("dogs", texts, k=1)[0].text
    first = re.search(r'<span class="text">(.*?)</span>', page)[1]
    assert first == best
    assert page.count("<li") == 10
    cells = re.findall(r'<td[^>]*style="--heat: ([\d.]+);?"[^>]*>(-?[\d.]+)</td>', page)
    assert len(cells) == 25
    assert "32 texts by t-SNE" in page
    assert f"http://127.0.0.1:{port}/v1/embeddings" in page
    assert json.dumps("small") in page.replace("&quot;", '"')
