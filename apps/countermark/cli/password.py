"""Asking for passwords: never on the command line, where other users could read them."""

import os
import sys

import typer

from countermark.attestations.codes import Code
from countermark.attestations.errors import CannotTellError
from countermark.attestations.keys import PASSWORD_VARIABLE


def new_password() -> bytes:
    """The password for a new key: from the environment, or typed twice on a terminal."""
    given = os.environ.get(PASSWORD_VARIABLE, "")
    if not given and not sys.stdin.isatty():
        raise CannotTellError(Code.UNREADABLE, "a password is needed and there is no terminal to ask on", fix=f"set {PASSWORD_VARIABLE}")
    typed: str = given or typer.prompt("Password", hide_input=True, confirmation_prompt=True)
    return typed.encode()
