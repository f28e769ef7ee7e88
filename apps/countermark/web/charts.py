"""Benchmark observations with their summary and interval, drawn by Vega-Lite as SVG without scripts.

The library is an extra and large, so that it is read only when there is something to draw. Where it is not installed, or a run cannot
be computed, the page says so, and has the same figures as a table.
"""

import json
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from markupsafe import Markup

from countermark.attestations.errors import InputError
from countermark.attestations.predicate_types import PredicateName
from countermark.contracts.evidence import Entry
from countermark.contracts.explain_text import plain
from countermark.contracts.measurements.run import BenchmarkRun

NOT_INSTALLED: Final = "The chart is not drawn, because the part that draws it is not installed: pip install 'countermark[charts]'."
MOST_DRAWN: Final = 400
"""More observations than this are a cloud; their table is left to the ledger too."""

_ELEMENTS: Final = frozenset({"svg", "g", "path", "text", "line", "rect", "defs", "clipPath", "tspan"})
_SVG: Final = "http://www.w3.org/2000/svg"
_MOST_LETTERS: Final = 40


@dataclass(frozen=True, slots=True)
class Sample:
    """One observation's value, as it computes from its operands."""

    task: str
    boot: str
    value: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A benchmark run. `svg` is empty where nothing is drawn, and `why` says why; `samples` are the figures."""

    index: int
    title: str
    unit: str
    summary: str
    interval: str
    samples: tuple[Sample, ...]
    svg: Markup
    why: str


def charts(entries: Iterable[Entry]) -> tuple[Chart, ...]:
    """One for each benchmark run among these statements, in the order of the ledger."""
    runs = [entry for entry in entries if entry.statement.predicate_type == PredicateName.BENCHMARK_RUN.uri]
    return tuple(_chart(entry) for entry in runs)


def _chart(entry: Entry) -> Chart:
    try:
        run = BenchmarkRun.of(entry.predicate)
    except InputError as error:
        return Chart(entry.index, "a run that cannot be computed", "", "", "", (), Markup(""), f"{error.message}.")
    values = [(task, boot, value) for task, boot, value in run.values(run.definition) if value is not None]
    samples = tuple(Sample(task, boot, _decimal(value)) for task, boot, value in values[:MOST_DRAWN])
    summary = f"{run.summary.statistic} {_decimal(run.value)} {run.unit}, n = {run.n} by {run.sampling_unit}"
    found = run.interval
    interval = f"{_decimal(found.low)} to {_decimal(found.high)} at level {_decimal(found.level)}, {found.method}" if found else "none"
    svg, why = Markup(""), ""
    if not values:
        why = "There is nothing to draw: no observation has a value."
    elif len(values) > MOST_DRAWN:
        why = f"The chart is not drawn: {len(values)} observations are more than {MOST_DRAWN}. The table has the first of them."
    else:
        svg, why = _drawn(_spec(run, values))
    return Chart(entry.index, run.definition, run.unit, summary, interval, samples, svg, why)


def _decimal(value: Fraction) -> str:
    """A number for people, to four figures behind the point."""
    return f"{float(value):,.4f}".rstrip("0").rstrip(".")


def _spec(run: BenchmarkRun, values: Sequence[tuple[str, str, Fraction]]) -> dict[str, Any]:
    """Points by task, coloured by nothing but told apart by shape per boot; the interval is a band, the summary a rule."""
    rows = [{"task": _short(task), "boot": _short(boot), "value": float(value)} for task, boot, value in values]
    across = {"field": "value", "type": "quantitative", "title": _short(run.unit), "scale": {"zero": False}}
    layers: list[dict[str, Any]] = []
    if run.interval:
        band = {"low": float(run.interval.low), "high": float(run.interval.high)}
        layers.append(
            {
                "data": {"values": [band]},
                "mark": {"type": "rect", "color": "var(--brand)", "opacity": 0.16},
                "encoding": {"x": {"field": "low", "type": "quantitative"}, "x2": {"field": "high"}},
            }
        )
    layers += [
        {
            "data": {"values": [{"value": float(run.value)}]},
            "mark": {"type": "rule", "color": "var(--brand)", "strokeWidth": 2},
            "encoding": {"x": across},
        },
        {
            "data": {"values": rows},
            "mark": {"type": "point", "filled": False, "size": 55, "color": "var(--ink)", "opacity": 0.9},
            "encoding": {
                "x": across,
                "y": {"field": "task", "type": "nominal", "title": None, "sort": None},
                "shape": {"field": "boot", "type": "nominal", "title": "boot"},
            },
        },
    ]
    text, line = "var(--soft)", "var(--line)"
    axis = {"labelColor": text, "titleColor": text, "gridColor": line, "domainColor": line, "tickColor": line, "titleFontWeight": "normal"}
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "width": 620,
        "height": {"step": 22},
        "background": None,
        "layer": layers,
        "config": {
            "view": {"stroke": None},
            "font": "sans-serif",
            "axis": {**axis, "labelFontSize": 12, "titleFontSize": 12},
            "legend": {"labelColor": text, "titleColor": text, "symbolStrokeColor": "var(--ink)", "labelFontSize": 12},
        },
    }


def _short(text: str) -> str:
    """A label. Control characters are shown as their escapes: the library's own process ends at a NUL."""
    text = plain(text)
    return text if len(text) <= _MOST_LETTERS else f"{text[: _MOST_LETTERS - 1]}…"


def _drawn(spec: dict[str, Any]) -> tuple[Markup, str]:
    try:
        import vl_convert
    except ImportError:
        return Markup(""), NOT_INSTALLED
    return _checked(vl_convert.vegalite_to_svg(json.dumps(spec), allowed_base_urls=[])), ""


def _checked(svg: str) -> Markup:
    """The drawing, rebuilt from what a drawing is made of: no other element, no handler, no link and no style of its own is let through."""
    ET.register_namespace("", _SVG)
    root = ET.fromstring(svg)  # noqa: S314 - made a moment ago by the library, which escapes what it is given
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag.rpartition("}")[2] not in _ELEMENTS:
                parent.remove(child)
        for name in list(parent.attrib):
            if name.startswith(("on", "aria-", "{")) or name in ("style", "href", "role", "id"):
                del parent.attrib[name]
    root.set("aria-hidden", "true")
    root.set("focusable", "false")
    root.set("class", "chart")
    return Markup(ET.tostring(root, encoding="unicode"))  # noqa: S704 - text and attributes are escaped by the serializer
