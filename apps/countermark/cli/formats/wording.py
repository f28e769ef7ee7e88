"""A finding in the words that every format uses, on one line and without control characters."""

from countermark.attestations.errors import Location
from countermark.attestations.findings import Finding
from countermark.contracts.explain_text import plain


def rule_of(finding: Finding) -> str:
    """The checker that the finding is of; where no checker was at work, its code."""
    return finding.checker or str(finding.code)


def sentence(finding: Finding) -> str:
    """What was observed and required, and the action that mends it."""
    said = [f"observed {finding.observed}" if finding.observed else "", f"required {finding.required}" if finding.required else ""]
    what = "; ".join(part for part in said if part) or str(finding.code)
    waived = f"Waived by {finding.waived_by}. " if finding.waived_by else ""
    return plain(f"{waived}{what}. To mend it: {finding.fix}" if finding.fix else f"{waived}{what}")


def title(finding: Finding) -> str:
    """The rule and the code."""
    return f"{finding.checker} [{finding.code}]" if finding.checker else f"[{finding.code}]"


def is_file(at: Location) -> bool:
    """Whether a location is in a file; an option of the command line is none."""
    return not at.file.startswith("--")
