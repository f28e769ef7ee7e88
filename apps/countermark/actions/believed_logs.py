"""Which checkpoints are believed: the logs and witnesses of a policy file, one log key, the logs of a trust policy; and of what age."""

from pathlib import Path

from countermark.actions.clock import duration_ns, now
from countermark.attestations.codes import Code
from countermark.attestations.documents import exists, read_file
from countermark.attestations.errors import CannotTellError, InputError, Location
from countermark.attestations.trust import TrustPolicy
from countermark.ledger.freshness import Freshness
from countermark.ledger.note import VerifierKey
from countermark.ledger.signed_note import MAX_NOTE_BYTES
from countermark.ledger.witness_policy import MAX_POLICY_BYTES, WitnessPolicy

_MAX_KEY_BYTES = 4096


def read_log_key(text: str) -> VerifierKey:
    """The key of `--log-key`: written out as NAME+HEX8+BASE64, or in a file. `InputError`."""
    path = Path(text)
    if text.count("+") < 2 or exists(path):
        text = _text(read_file(path, limit=_MAX_KEY_BYTES), text).rstrip("\n")
    return VerifierKey.parse(text)


def read_policy(path: Path) -> WitnessPolicy:
    """The policy of `--policy`. `InputError`."""
    return WitnessPolicy.parse(read_file(path, limit=MAX_POLICY_BYTES), str(path))


def read_note(path: Path) -> str:
    """A checkpoint that somebody holds. `InputError`."""
    return _text(read_file(path, limit=MAX_NOTE_BYTES), str(path))


def believed(log_key: str | None = None, policy: Path | None = None, trust: Path | None = None) -> WitnessPolicy:
    """What a checkpoint has to satisfy. A log key that is given is the only one believed, whatever the policy lists.

    `CannotTellError` UNTRUSTED when nothing says which log is meant.
    """
    chosen = read_policy(policy) if policy else WitnessPolicy((), {}, {}, None, "--log-key")
    if log_key is not None:
        logs: tuple[VerifierKey, ...] = (read_log_key(log_key),)
    elif chosen.logs or trust is None or not exists(trust):
        logs = chosen.logs
    else:
        logs = tuple(VerifierKey.parse(log.vkey) for log in TrustPolicy.load(trust).logs)
    if not logs:
        fix = "give --log-key with the verifier key that the log's operator published"
        raise CannotTellError(Code.UNTRUSTED, "no log is believed", at=Location(chosen.source), fix=fix)
    return WitnessPolicy(logs, chosen.witnesses, chosen.groups, chosen.quorum, chosen.source)


def no_older_than(text: str | None) -> Freshness | None:
    """The greatest age of `--max-age`, counted back from now."""
    return None if text is None else Freshness(now().ms, duration_ns(text) // 1_000_000)


def _text(data: bytes, source: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        fix = "give the file as it was published"
        raise InputError(Code.MALFORMED, "it is not UTF-8 text", at=Location(source), fix=fix) from None
