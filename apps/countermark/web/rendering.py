"""From a template and a view to one self-contained page.

Nothing that a record says becomes markup: Jinja escapes every value, and characters that would not print, among them those that turn the
direction of writing, are shown as their escapes. The Content-Security-Policy lets the page load nothing but its own style sheet, by its
hash, and its icon; there is no script, and no inline style.
"""

import base64
import hashlib
from importlib import resources
from typing import Final

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape

from countermark.contracts.explain_text import plain
from countermark.web.wording import counted, grouped

_HERE: Final = resources.files("countermark.web") / "templates"
_ICON: Final = (
    "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'>"
    "<path d='M5 3h22v15c0 6-5 9-11 11C10 27 5 24 5 18Z' fill='#0d5c63'/>"
    "<path d='m10 15 5 5 8-10' fill='none' stroke='#fff' stroke-width='3.4'/></svg>"
)


def render(template: str, **view: object) -> str:
    """The page of a template. Raises what Jinja raises for a template that does not fit its view, which is a mistake of the program."""
    style = _read("page.css")
    hashed = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{hashed}'; img-src data:; base-uri 'none'; form-action 'none'"
    icon = f"data:image/svg+xml;base64,{base64.b64encode(_ICON.encode()).decode()}"
    return _environment().get_template(template).render(style=Markup(style), policy=policy, icon=icon, **view)  # noqa: S704 - our own sheet


def _environment() -> Environment:
    environment = Environment(
        autoescape=True,
        loader=FunctionLoader(_read),
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(number=grouped, counted=counted, lines=_lines)
    return environment


def _read(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def _shown(value: object) -> object:
    return value if isinstance(value, Markup) else plain(str(value))


def _lines(text: str) -> Markup:
    """A text of several lines, each as it is."""
    return Markup("\n").join(escape(plain(line)) for line in text.split("\n"))
