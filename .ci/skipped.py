"""Count skipped tests, and fail when one is skipped for a reason that is not on the list."""

import re
import sys
import xml.etree.ElementTree as ET
from collections import Counter

# A pattern for the reason, and why a machine may lack it.
ALLOWED = {
    r"\.\./shared .*": "the shared fixtures lie beside the checkout, or not",
    r"(?i).*cuda-bindings.*|.*nvidia-cuda-nvrtc.*|.*\[cuda\].*": "the extra [cuda] is not installed for the tests",
    r"(?i).*no Chromium.*|.*requirements-pages.*|.*\[charts\].*": "the browser and the charts are not installed for the tests",
    r"(?i).*no GPU.*": "no GPU at hand",
    r"COUNTERMARK_(SIGSTORE_CONFORMANCE|WYCHEPROOF) names no checkout.*": "material of others that is not part of this repository",
    r"(?i).*@sigstore/verify.*": "the peer in JavaScript needs Node and its package",
    r"(?i).*SoftHSM2.*": "no software token, or the extra [hsm] is not installed",
    r"(?i).*g\+\+.*": "no compiler",
    r"(?i).*(root|superuser).*": "rights cannot be taken away from root",
}


def main(path: str) -> int:
    """0 when every skipped test has a reason of the list."""
    tree = ET.parse(path)  # noqa: S314 - written by pytest a moment ago
    cases = list(tree.iter("testcase"))
    reasons = Counter(skipped.get("message") or "" for case in cases for skipped in case.iter("skipped"))
    unknown = [reason for reason in reasons if not any(re.fullmatch(pattern, reason, re.DOTALL) for pattern in ALLOWED)]
    for reason, count in reasons.most_common():
        sys.stdout.write(f"{count:>5}  {reason}{'  <- not on the list' if reason in unknown else ''}\n")
    sys.stdout.write(f"{len(cases)} tests, {sum(reasons.values())} skipped\n")
    return 1 if unknown or not cases else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
