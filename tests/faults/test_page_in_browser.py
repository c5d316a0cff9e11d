"""The page of `sentloom serve` in Chromium: what a visitor sees and does, by mouse, keyboard and phone."""

import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from sentloom.encoder import Encoder
from sentloom.search.system import Index
from sentloom.serving.batcher import Batcher
from sentloom.serving.models import Corpus, Probe, ServedModel
from sentloom.serving.service import Key, Service
from tests.encoder.small_models import SENTENCES, build_model_folder
from tests.serving.test_server import serving

pytestmark = pytest.mark.long
FAULT = "the page in Chromium"

SECRET = "0123456789abcdef0123"
TEXTS = [f"{sentence} {at}" for sentence in SENTENCES for at in range(8)]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)
PHONE = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2, "has_touch": True, "is_mobile": True}


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install playwright"
    )
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed: apt install chromium")
    with playwright.sync_playwright() as running:
        started = running.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield started
        started.close()


@pytest.fixture(scope="module")
def encoders(tmp_path_factory):
    """A base, and a model whose weights differ a little."""
    folder = build_model_folder("bert", tmp_path_factory.mktemp("served") / "small")
    base, fitted = Encoder.load(folder, pooling="mean"), Encoder.load(folder, pooling="mean")
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in fitted.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.05)
    return {"base": base, "fitted": fitted}


@pytest.fixture
def make_service(encoders):
    """A service with both models and a corpus; arguments are those of Service."""
    with ThreadPoolExecutor(2) as threads:

        def make(**more):
            models = {
                name: ServedModel(name, one, Probe("Yes", one.encode("Yes")), created=0)
                for name, one in encoders.items()
            }
            indexes = {name: Index(TEXTS, one.encode(TEXTS, role="document")) for name, one in encoders.items()}
            return Service(models, Batcher(threads, 2), Corpus(TEXTS, "line {}".format, indexes), **more)

        yield make


@pytest.fixture
def visit(browser):
    """Open a page. At the end, nothing may have gone wrong on it, and no other server may have been asked."""
    problems, contexts = [], []

    def opened(address, **options):
        contexts.append(browser.new_context(**options))
        page = contexts[-1].new_page()
        page.set_default_timeout(180_000)  # the machine may be busy
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on(
            "request",
            lambda asked: asked.url.startswith((address.partition("/?")[0], "data:")) or problems.append(asked.url),
        )
        page.goto(address)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert problems == []


def address_of(port):
    return f"http://127.0.0.1:{port}"


def shown(page, column):
    """The texts of one list of results, in order."""
    return page.locator("#results > div").nth(column).locator("li .text").all_text_contents()


def test_both_models_search_side_by_side_and_what_moved_is_marked(make_service, encoders, visit):
    with serving(make_service()) as (port, _):
        page = visit(address_of(port))
        page.get_by_role("searchbox").fill("dogs in the snow")  # searches while it is typed
        page.locator("#results li").nth(19).wait_for()
        before, after = shown(page, 0), shown(page, 1)
        expected = {name: one.search("dogs in the snow", TEXTS, k=10) for name, one in encoders.items()}
        assert before == [hit.text for hit in expected["base"]]
        assert after == [hit.text for hit in expected["fitted"]]
        new = set(after) - set(before)
        assert page.locator("#results li.new").count() == page.locator("#results li.gone").count() == len(new)
        assert page.locator("#search-status").text_content().startswith(f"{len(new)} of 10 results are new")
        assert "q=dogs+in+the+snow" in page.url
        page.reload()  # the address is the search
        page.locator("#results li").nth(19).wait_for()
        assert shown(page, 1) == after
        page.get_by_label("before").select_option("fitted")  # the same model twice is shown once
        page.locator("#results h3 span", has_text="after").wait_for(state="detached")
        assert page.locator("#results > div").count() == 1


def test_pasted_sentences_become_a_heat_map(make_service, encoders, visit):
    lines = ["A man plays.", "Two dogs run.", "Yes"]
    with serving(make_service()) as (port, _):
        page = visit(address_of(port))
        page.get_by_label("Sentences, one per line").fill("\n".join([*lines, "", "  "]))
        page.get_by_role("button", name="Compare").click()
        page.get_by_text("3 sentences compared.").wait_for()
        tables = [
            [[float(cell) for cell in row.locator("td").all_text_contents()] for row in table.locator("tbody tr").all()]
            for table in page.locator("table.heat").all()
        ]
    for table, encoder in zip(tables, encoders.values(), strict=True):
        np.testing.assert_allclose(table, encoder.similarity(lines, lines), atol=0.00501)


def test_with_a_key_the_page_asks_for_it_and_its_snippets_run(make_service, encoders, visit, monkeypatch):
    monkeypatch.setenv("SENTLOOM_API_KEY", SECRET)
    with serving(make_service(key=Key(SECRET))) as (port, _):
        page = visit(address_of(port))
        key = page.get_by_label("This server needs an API key")
        key.fill("not the right one")
        page.get_by_role("button", name="Use the key").click()
        page.get_by_text("The API key is missing or wrong").wait_for()
        key.fill(SECRET)
        page.get_by_role("button", name="Use the key").click()
        page.get_by_text("base (32 dimensions) and fitted (32 dimensions)").wait_for()
        assert not key.is_visible()
        curl, python, langchain = page.locator("#snippets code").all_text_contents()
        found = {}
        exec(python, found)
        answer = subprocess.run(["bash", "-c", curl], capture_output=True, text=True).stdout
    np.testing.assert_allclose(found["vector"], encoders["fitted"].encode("Where is the canteen?"), atol=1e-6)
    assert re.search(r'"model": ?"fitted"', answer)
    compile(langchain, "langchain", "exec")


def test_a_snippet_is_copied(make_service, visit):
    with serving(make_service()) as (port, _):
        page = visit(address_of(port), permissions=["clipboard-read", "clipboard-write"])
        page.get_by_role("button", name="Copy the curl example").click()
        page.get_by_text("Copied").wait_for()
        assert page.evaluate("navigator.clipboard.readText()") == page.locator("#snippets code").first.text_content()


def test_without_a_corpus_there_is_no_search(make_service, visit):
    service = make_service()
    service.corpus = None
    with serving(service) as (port, _):
        page = visit(address_of(port))
        page.get_by_text("5 sentences compared.").wait_for()
        assert not page.get_by_role("searchbox").is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("device", [{}, PHONE], ids=["desk", "phone"])
def test_nothing_is_wider_than_the_window_and_text_is_readable(make_service, visit, scheme, device):
    with serving(make_service()) as (port, _):
        page = visit(f"{address_of(port)}/?q=dogs", color_scheme=scheme, **device)
        page.locator("#results li").nth(19).wait_for()
        page.get_by_text("5 sentences compared.").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.evaluate(CONTRASTS) == []


# Text whose contrast with what is behind it is below 4.5 to 1 (WCAG 2, level AA).
CONTRASTS = """() => {
    const paint = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
    const rgba = (colour) => {
        paint.clearRect(0, 0, 1, 1); paint.fillStyle = colour; paint.fillRect(0, 0, 1, 1);
        return paint.getImageData(0, 0, 1, 1).data;
    };
    const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
        .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, at) => sum + v * [0.2126, 0.7152, 0.0722][at], 0);
    const behind = (one) => {
        for (; one; one = one.parentElement) {
            const found = rgba(getComputedStyle(one).backgroundColor);
            if (found[3] === 255) return found;
        }
        return [255, 255, 255];
    };
    const low = [];
    for (const one of document.querySelectorAll('body *')) {
        const own = [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
        if (!own || !one.checkVisibility() || one.closest('.hidden, .skip, noscript, option')) continue;
        const [a, b] = [light(rgba(getComputedStyle(one).color)), light(behind(one))].sort((x, y) => y - x);
        const contrast = (a + 0.05) / (b + 0.05);
        if (contrast < 4.5) low.push(`${one.tagName}.${one.className} ${contrast.toFixed(2)}: ${one.textContent.slice(0, 40)}`);
    }
    return low;
}"""
