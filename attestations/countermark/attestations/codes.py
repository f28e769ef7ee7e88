"""The closed lists of words: result codes, exit codes, outcomes, statuses.

A result code names what was found; an exit code tells a shell which of eight things happened. Both are frozen: a test compares
them with `docs/codes.md`.
"""

from collections.abc import Iterable
from enum import IntEnum, StrEnum


class ExitCode(IntEnum):
    """What a process exit means, the same for every command."""

    YES = 0
    NO = 1
    USAGE = 2
    INVALID = 3
    CANNOT_TELL = 4
    NOTHING = 5
    TAMPERED = 6
    INTERNAL = 70

    @staticmethod
    def first_of(codes: Iterable["ExitCode"]) -> "ExitCode":
        """The code to exit with when several things happened; no code at all means that nothing was evaluated."""
        return min(codes, key=_PRECEDENCE.index, default=ExitCode.NOTHING)


_PRECEDENCE = (
    ExitCode.INTERNAL,
    ExitCode.USAGE,
    ExitCode.TAMPERED,
    ExitCode.INVALID,
    ExitCode.CANNOT_TELL,
    ExitCode.NO,
    ExitCode.NOTHING,
    ExitCode.YES,
)


class Outcome(StrEnum):
    """What one check said. Only `pass` satisfies; a check that says nothing is an `error`."""

    PASS = "pass"
    FAIL = "fail"
    SKIPPED = "skipped"
    INCONCLUSIVE = "inconclusive"
    NOT_RUN = "not-run"
    ERROR = "error"
    NOT_APPLICABLE = "not-applicable"


class Status(StrEnum):
    """What a capability of an image is worth; derived from evidence, never stored in it."""

    QUALIFIED = "qualified"
    RESEARCH_ONLY = "research-only"
    IMPLEMENTED = "implemented"
    UNSUPPORTED = "unsupported"
    UNQUALIFIED = "unqualified"
    REJECTED = "rejected"


class Severity(StrEnum):
    """Whether a finding blocks, warns or informs."""

    BLOCK = "block"
    WARN = "warn"
    INFO = "info"


class Code(StrEnum):
    """Every result code the program can print."""

    # derived status of a requirement
    OK = "OK"
    SUBJECT_UNKNOWN = "SUBJECT_UNKNOWN"
    SUBJECT_KIND = "SUBJECT_KIND"
    IMAGE_REJECTED = "IMAGE_REJECTED"
    CAP_REJECTED = "CAP_REJECTED"
    CAP_FAILED = "CAP_FAILED"
    CAP_RESEARCH_ONLY = "CAP_RESEARCH_ONLY"
    EVIDENCE_EXPIRED = "EVIDENCE_EXPIRED"
    EVIDENCE_BASIS = "EVIDENCE_BASIS"
    CONTROLS_INCOMPLETE = "CONTROLS_INCOMPLETE"
    RUNS_TOO_FEW = "RUNS_TOO_FEW"
    EVIDENCE_INCONCLUSIVE = "EVIDENCE_INCONCLUSIVE"
    RECEIPT_CONTRADICTED = "RECEIPT_CONTRADICTED"
    SIGNER_UNTRUSTED = "SIGNER_UNTRUSTED"
    CAP_UNQUALIFIED = "CAP_UNQUALIFIED"
    CAP_SCOPE = "CAP_SCOPE"
    CAP_NO_EVIDENCE = "CAP_NO_EVIDENCE"
    # contracts
    CONTRACT_VIOLATED = "CONTRACT_VIOLATED"
    CONTRACT_NOT_EVALUATED = "CONTRACT_NOT_EVALUATED"
    PIN_MISMATCH = "PIN_MISMATCH"
    NOTHING_EVALUATED = "NOTHING_EVALUATED"
    # claims and records
    CLAIM_EXCEEDS = "CLAIM_EXCEEDS"
    CLAIM_TRANSFER = "CLAIM_TRANSFER"
    RECORD_CONTRADICTED = "RECORD_CONTRADICTED"
    RECORD_UNMAPPED = "RECORD_UNMAPPED"
    REF_NOT_HERE = "REF_NOT_HERE"
    # signatures
    SIG_INVALID = "SIG_INVALID"
    SIG_UNVERIFIABLE = "SIG_UNVERIFIABLE"
    THRESHOLD = "THRESHOLD"
    ROLE = "ROLE"
    SEPARATION = "SEPARATION"
    KEY_WINDOW = "KEY_WINDOW"
    KEY_REVOKED = "KEY_REVOKED"
    SUBJECT_MISMATCH = "SUBJECT_MISMATCH"
    SUBJECT_CONTRADICTION = "SUBJECT_CONTRADICTION"
    PAYLOAD_TYPE = "PAYLOAD_TYPE"
    # documents
    SCHEMA_INVALID = "SCHEMA_INVALID"
    DUPLICATE_KEY = "DUPLICATE_KEY"
    BAD_NUMBER = "BAD_NUMBER"
    BAD_TIME = "BAD_TIME"
    BAD_DIGEST = "BAD_DIGEST"
    TAG_NOT_DIGEST = "TAG_NOT_DIGEST"
    TOO_LARGE = "TOO_LARGE"
    UNREADABLE = "UNREADABLE"
    UNKNOWN_NAME = "UNKNOWN_NAME"
    # ledger
    TAMPERED = "TAMPERED"
    SPLIT_VIEW = "SPLIT_VIEW"
    ROLLBACK = "ROLLBACK"
    UNTRUSTED = "UNTRUSTED"
    INCOMPLETE = "INCOMPLETE"
    MALFORMED = "MALFORMED"
    STALE = "STALE"
    UNSUPPORTED = "UNSUPPORTED"
    SUSPECT = "SUSPECT"
    WITHHELD = "WITHHELD"
    GUARD_MISSING = "GUARD_MISSING"
    CLOCK = "CLOCK"
    DUPLICATE = "DUPLICATE"
    LEDGER_TAMPERED = "LEDGER_TAMPERED"
    LEDGER_MISSING = "LEDGER_MISSING"
    LEDGER_LOCKED = "LEDGER_LOCKED"
    LEDGER_SCHEMA = "LEDGER_SCHEMA"
    # restore
    DEVICE_ABSENT = "DEVICE_ABSENT"
    DRIVER_ERROR = "DRIVER_ERROR"
    RECOMPUTE = "RECOMPUTE"
