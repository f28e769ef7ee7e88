"""`query capability`: which images have a capability in a scope, by the gate's own judgement of every image that the ledger knows."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from countermark.actions.gate import Asked
from countermark.actions.queries.candidates import images
from countermark.actions.queries.judged_by import documents, told
from countermark.actions.queries.listing import Bearing, Listing, bearing_of
from countermark.actions.queries.view import View, When, open_view
from countermark.actions.workspace import Workspace
from countermark.attestations.codes import Code, Status
from countermark.attestations.digests import Digest
from countermark.attestations.errors import UsageError
from countermark.attestations.times import Instant
from countermark.contracts.policy import ReleasePolicy


@dataclass(frozen=True, slots=True)
class ImageStatus:
    """What the capability is worth for one image. `entries` are those that the answer rests on; it can change by age at `expires`."""

    image: Digest
    status: Status
    code: Code
    bearing: Bearing
    observed: str
    entries: tuple[int, ...]
    expires: Instant | None

    def cells(self) -> dict[str, str]:
        """The columns for people."""
        expires = str(self.expires.whole_seconds()) if self.expires else ""
        return {"image": str(self.image), "status": self.status, "code": self.code, "observed": self.observed, "expires": expires}


def capability_listing(workspace: Workspace, asked: Asked, capability: str, scope: str | None, status: str | None) -> Listing:
    """The status of a capability in a scope (`tp=4,dcp=1,…`) for every image; only those of one `status`, where it is given.

    `asked` holds the policy, if any, whose rules of evidence count, and the effective time. Raises what the gate raises.
    """
    wanted = _status(status)
    require = f"{capability}@{scope}" if scope else capability
    by = documents(workspace, replace(asked, requires=(require,)))
    with open_view(workspace, When.of(asked), by.trust) as view:
        rows = [_status_of(view, image, by.policy) for image in images(view)]
        shown = [row for row in rows if wanted in (None, row.status)]
        hidden = [row for row in rows if row not in shown]
        requirement = by.policy.requires[0]
        question = f"which images have {requirement}" + (f" with status {wanted}" if wanted else "")
        nothing = () if rows else ("any image: the ledger names none",)
        notes = (*told(by, requirement), *_unlisted(hidden))
        return Listing(question, view.head, view.effective_time, shown, nothing, notes, tuple(row.bearing for row in rows))


def _status(text: str | None) -> Status | None:
    if text is not None and text not in set(Status):
        raise UsageError(Code.UNKNOWN_NAME, f"there is no status {text!r}", fix=f"use one of {', '.join(Status)}")
    return Status(text) if text else None


def _status_of(view: View, image: Digest, policy: ReleasePolicy) -> ImageStatus:
    (result,) = view.decide(image, policy).requirements
    bearing = bearing_of(result.code, holds=result.satisfied)
    used = tuple(item.index for item in result.evidence if item.used)
    return ImageStatus(image, result.status, result.code, bearing, result.observed, used, result.next_expiry)


def _unlisted(hidden: Sequence[ImageStatus]) -> list[str]:
    """What the filter left out, negative apart from not found, so that an empty list is not read as "nobody tested"."""
    counted = Counter((row.bearing, row.status, row.code) for row in hidden)
    return [f"not listed: {count} {status} [{code}], {bearing}" for (bearing, status, code), count in sorted(counted.items())]
