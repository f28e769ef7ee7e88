"""A page as a browser would take it apart, and what no page of ours may hold."""

import base64
import hashlib
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import html5lib

ATTACKS = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</pre></style><svg onload=alert(1)>",
    "{{ 7 * 191 }}{% raw %}",
    "javascript:alert(1)",
    "' onfocus='alert(1)' autofocus='",
    "\x1b[2J\u202egnihton\x00",
)
"""Texts that would do something if any of them became markup."""

_XHTML = "{http://www.w3.org/1999/xhtml}"
_NEVER = frozenset(
    {"script", "iframe", "object", "embed", "form", "input", "base", "img", "audio", "video", "foreignObject", "use", "image"}
)


def parsed(page: str) -> ET.Element:
    """The document, by the parser of the HTML standard; its first parse error is raised."""
    root: ET.Element = html5lib.HTMLParser(strict=True, tree=html5lib.getTreeBuilder("etree")).parse(page)
    return root


def text_of(page: str) -> str:
    """All text of the page's body, with single spaces."""
    body = parsed(page).find(f"{_XHTML}body")
    assert body is not None
    return " ".join(" ".join(body.itertext()).split())


def assert_harmless(page: str) -> None:
    """Nothing runs, nothing is loaded, nothing leads away, and the one style sheet is the one that its policy names."""
    root = parsed(page)
    for element in root.iter():
        name = str(element.tag).rpartition("}")[2]
        assert name not in _NEVER, name
        for attribute, value in element.attrib.items():
            short = attribute.rpartition("}")[2]
            assert not short.startswith("on"), (name, short)
            assert short not in ("style", "src", "action", "formaction", "srcdoc"), (name, short)
            assert short != "href" or value.startswith(("#", "data:image/svg+xml;base64,")), (name, value)
    targets = {element.get("id") for element in root.iter() if element.get("id")}
    links = {href for element in root.iter() if (href := element.get("href", "")).startswith("#")}
    assert {link.removeprefix("#") for link in links} <= targets
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    (sheet,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    hashed = base64.b64encode(hashlib.sha256(sheet.encode()).digest()).decode()
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy.replace("&#39;", "'").startswith(f"default-src 'none'; style-src 'sha256-{hashed}'; img-src data:;")


def read(path: Path) -> str:
    """The page in a file, after it was found harmless."""
    page = path.read_text(encoding="utf-8")
    assert_harmless(page)
    return page
