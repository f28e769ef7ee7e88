"""What a command found, in the formats that other programs read. Each is a pure function of the report."""

from importlib import import_module
from typing import Final

from countermark.cli.report import Report

FINDINGS: Final = ("markdown", "sarif", "junit", "github")
"""The formats of commands that judge: for pull requests, code scanning, test reports and GitHub's own log. Each is a module here."""


def render(form: str, command: str, report: Report) -> str:
    """The report in one of these formats; a module is read when it is asked for, since most runs ask for none."""
    written: str = import_module(f"countermark.cli.formats.{form}").render(command, report)
    return written
