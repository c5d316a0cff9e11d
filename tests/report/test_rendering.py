"""Templates: every value is escaped, as HTML or as Markdown, and a missing one is an error."""

from dataclasses import replace

import pytest
from jinja2 import UndefinedError

from sentloom.report.page import page, render, report_markdown
from tests.report.results_by_hand import BARE

HOSTILE = replace(BARE, reason='<b title="x"> &amp; *a* [b](c) | `d`\n# e')


def test_html_is_escaped():
    assert "&lt;b title=&#34;x&#34;&gt; &amp;amp; *a* [b](c) | `d`\n# e" in page(HOSTILE, {})


def test_markdown_is_escaped():
    # backslashes before what Markdown would read, an entity for what HTML would read, all on one line
    assert r'&lt;b title="x"> \&amp; \*a\* \[b\](c) \| \`d\` \# e' in report_markdown(HOSTILE, [])


def test_a_missing_value_is_an_error():
    with pytest.raises(UndefinedError):
        render("model_card.md", BARE)
