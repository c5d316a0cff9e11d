"""The source of the page; what it does is tried in Chromium by tests/faults/test_page_in_browser.py."""

import re
from html.parser import HTMLParser
from importlib.resources import files

import pytest

PAGE = files("sentloom.serving") / "page"


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
    headings = [given.get("aria-labelledby") for tag, given in elements if tag == "section"]
    assert all(headings)
