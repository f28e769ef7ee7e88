"""Checks of keys: what the key events of the log take away from signatures that hold in themselves."""

from collections.abc import Callable, Iterable

from countermark.attestations.codes import Code, Severity
from countermark.attestations.trust import TrustPolicy
from countermark.ledger.audit_report import Findings
from countermark.ledger.key_history import KeyHistory
from countermark.ledger.read import Entry


def check_keys(signed_by: Callable[[bytes], Iterable[int]], events: Iterable[Entry], policy: TrustPolicy, findings: Findings) -> None:
    """Report key events that nobody may tell, and entries signed by keys that others took away, before or after it was told.

    `signed_by` gives the entries that a key signed, by the 32 bytes of its fingerprint.
    """
    history = KeyHistory(events, policy)
    for told in history.told:
        if told.code is Code.THRESHOLD:
            observed = "more must sign this key event before it counts"
            findings.add(Code.UNTRUSTED, "key-events", observed, entry=told.index, severity=Severity.INFO)
        elif told.code is not Code.OK:
            observed = f"nobody who may signed this key event, so that it does not count [{told.code}]"
            findings.add(Code.UNTRUSTED, "key-events", observed, entry=told.index)
    for key in history.ended:
        for index in signed_by(key):
            standing = history.standing(key, index)
            if standing is Code.SUSPECT:
                findings.add(Code.SUSPECT, "keys", f"signed by {key.hex()}, which was revoked since", entry=index)
            elif standing is not Code.OK:
                findings.add(Code.UNTRUSTED, "keys", f"signed by {key.hex()} after it was taken away", entry=index)
