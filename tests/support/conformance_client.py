"""A client of sigstore-conformance's protocol: `verify-bundle` of its command line, put to `countermark verify bundle`.

To run that project's own suite from its checkout: `pytest --entrypoint="python .../conformance_client.py" --skip-signing`.
"""

import sys
from collections.abc import Sequence

PASSED_ON = ("--certificate-identity", "--certificate-oidc-issuer", "--key", "--trusted-root")


def translated(arguments: Sequence[str]) -> list[str]:
    """The arguments of our command for those of the protocol."""
    if arguments[:1] != ["verify-bundle"]:
        raise SystemExit("only verify-bundle is known: signing keyless needs a network")
    rest = [argument for argument in arguments[1:] if argument != "--staging"]
    *options, artifact = rest
    pairs = dict(zip(options[::2], options[1::2], strict=True))
    passed = [part for name in PASSED_ON if name in pairs for part in (name, pairs[name])]
    return ["verify", "bundle", pairs["--bundle"], *passed, "--artifact", artifact]


if __name__ == "__main__":
    from countermark.cli.app import run

    sys.exit(run(translated(sys.argv[1:])))
