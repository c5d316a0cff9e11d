"""A fit as a notebook shows it: the verdict, and base against winner. Everything in it is escaped."""

from pathlib import Path

from jinja2 import Environment

from sentloom.fitting.result import FitResult
from sentloom.report.formatting import headline

PAGE = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string("""\
<div>
<p><strong>{{ headline }}.</strong> {{ result.reason }}</p>
<table>
<thead><tr><th>test</th><th>base</th><th>fitted</th><th>gain (interval)</th></tr></thead>
<tbody>
{% for one in result.measures %}
<tr><td style="text-align: left">{{ one.name }}</td><td>{{ "%.2f" | format(one.before) }}</td>
<td>{{ "%.2f" | format(one.after) }}</td>
<td>{{ "%+.2f (%+.2f to %+.2f)" | format(one.difference, one.low, one.high) }}</td></tr>
{% endfor %}
</tbody>
</table>
<p>{% if model %}Model: <code>{{ model }}</code>. {% else %}No model was written. {% endif %}
Report: <code>{{ report }}</code></p>
</div>
""")


def fit_html(result: FitResult, model: Path | None, report: Path) -> str:
    """The HTML of a result."""
    return PAGE.render(result=result, headline=headline(result), model=model, report=report)
