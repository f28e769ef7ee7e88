"""The adapters of this version, by the name that `--adapter` gives."""

from collections.abc import Mapping
from typing import Final

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, Location
from countermark.attestations.spelling import meant
from countermark.contracts.adapters.base import Adapter
from countermark.contracts.adapters.benchmark_run import BenchmarkRunAdapter
from countermark.contracts.adapters.campaign import Campaign
from countermark.contracts.adapters.event_fenced import EventFenced
from countermark.contracts.adapters.explainer import Explainer
from countermark.contracts.adapters.fields import Field, shown
from countermark.contracts.adapters.live_validation import LiveValidation
from countermark.contracts.adapters.own_quality import OwnQualityReport
from countermark.contracts.adapters.performance_matrix import PerformanceMatrix
from countermark.contracts.adapters.quality_report import QualityReport
from countermark.contracts.adapters.reader_research import ReaderResearch
from countermark.contracts.adapters.snapshot_safe import SnapshotSafe

_ALL: Final[tuple[Adapter, ...]] = (
    LiveValidation(),
    ReaderResearch(),
    EventFenced(),
    SnapshotSafe(),
    Explainer(),
    Campaign(),
    QualityReport(),
    PerformanceMatrix(),
    BenchmarkRunAdapter(),
    OwnQualityReport(),
)
ADAPTERS: Final[Mapping[str, Adapter]] = {adapter.name: adapter for adapter in _ALL}


def adapter_named(name: str) -> Adapter:
    """The adapter of that name; `InputError` UNKNOWN_NAME when this version has none."""
    if name not in ADAPTERS:
        fix = meant(name, ADAPTERS) or f"the adapters are {', '.join(ADAPTERS)}"
        raise InputError(Code.UNKNOWN_NAME, f"there is no adapter {name!r}", at=Location("--adapter"), fix=fix)
    return ADAPTERS[name]


def adapter_for(root: Field, chosen: Adapter | None = None) -> Adapter:
    """The adapter that recognises a document, or the chosen one if it does; `InputError` RECORD_UNMAPPED otherwise."""
    candidates = list(ADAPTERS.values()) if chosen is None else [chosen]
    for adapter in candidates:
        if adapter.recognises(root):
            return adapter
    stated = root["schema"] if root["schema"].present else root
    what = f"schema {shown(stated.value)}" if stated.text else "no schema that is known here"
    by = "no adapter reads" if chosen is None else f"the adapter {chosen.name} does not read"
    raise InputError(
        Code.RECORD_UNMAPPED,
        f"{by} this document: it states {what}",
        at=stated.at,
        fix=f"the adapters are {', '.join(ADAPTERS)}; write an EvidenceMapping for a record of your own",
    )
