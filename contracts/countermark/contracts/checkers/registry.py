"""The checkers of this version, by the name that an invariant gives."""

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from countermark.attestations.codes import Code
from countermark.attestations.conformance import Conformance
from countermark.attestations.errors import InputError, Location
from countermark.attestations.schema_problems import Problem, explain
from countermark.contracts.checkers.arithmetic import GeometryDivides, LimitsOrdered
from countermark.contracts.checkers.base import Checker, Parameters
from countermark.contracts.checkers.benchmarks import (
    AttainableSignificance,
    ExecutionRevision,
    OutputContract,
    OutputLengthBand,
    QualityAttached,
    Repetitions,
    SkippedDeclared,
    TargetDraftPinned,
    TestedVsConfigured,
    Uncertainty,
)
from countermark.contracts.checkers.claims import FiveSections, WithinEvidence
from countermark.contracts.checkers.comparison_records import (
    Comparable,
    DistinctInputs,
    HardwareIdentity,
    OneDenominator,
    OneVariable,
    RegressionThreshold,
    SameDeployment,
    SameInputs,
    SamplingParams,
)
from countermark.contracts.checkers.compat import FieldsUnchanged, Pair
from countermark.contracts.checkers.config_commands import CommandResolved, FlagsForbidden
from countermark.contracts.checkers.config_keys import KeysAccepted, KeysComplete, TypesStrict, ValueLimits
from countermark.contracts.checkers.docs import DocsCommands
from countermark.contracts.checkers.identity import ClearToken, DiffDeclared, Distinct
from countermark.contracts.checkers.image import IdKind, LabelNotEvidence, RanksEqual
from countermark.contracts.checkers.image_build import BuiltFrom, Platform
from countermark.contracts.checkers.manifests import DeltaChain, ManifestStrict, ObjectsContiguous, ObjectsHashed
from countermark.contracts.checkers.metrics import AggregateConsistent, MinSample, QualityGate, RankVectors, Residual
from countermark.contracts.checkers.models import DraftPinned, ModelPinned
from countermark.contracts.checkers.pins_agree import PinsAgree
from countermark.contracts.checkers.pins_full_length import PinsFullLength
from countermark.contracts.checkers.preimage import Preimage
from countermark.contracts.checkers.rates import DenominatorDeclared, Recompute
from countermark.contracts.checkers.receipts import PrecedesContainer, SameDescriptor
from countermark.contracts.checkers.references import ChecksumLists, CommitBound, EvidenceRoot, RawRetained, RefsResolve
from countermark.contracts.checkers.restores import (
    HitAttribution,
    NegativeControl,
    PostCanary,
    RecomputeEquivalent,
    SemanticOracle,
    StreamDigest,
)
from countermark.contracts.checkers.run_identity import BootIdentity, CacheState, DateWindow, HarnessPinned, SourceState, ThinkingMode
from countermark.contracts.checkers.run_numbers import (
    BytesPlausible,
    CoverageExact,
    FiniteNumbers,
    HonestTokenCount,
    MemoryKinds,
    PercentileSupport,
    StatisticNamed,
    UnitConsistent,
)
from countermark.contracts.checkers.run_requests import (
    AccuracyInPerformance,
    ConcurrencyReached,
    DurationWarmup,
    ErrorsZero,
    RepeatProbe,
    StopReason,
)
from countermark.contracts.checkers.schemas import SchemaValid
from countermark.contracts.checkers.secrets import NoSecrets
from countermark.contracts.checkers.self_test import SelfTest
from countermark.contracts.checkers.source import EvaluatedVsHead, PinConsistent
from countermark.contracts.checkers.statuses import (
    NotDeployable,
    PlannedNotPassed,
    QualifiedComplete,
    SemanticFailRejects,
    Transitions,
    Vocabulary,
)
from countermark.contracts.checkers.subjects import ClaimNoTransfer, NoTransfer, ScopeCovered, Subject

CHECKERS: Mapping[str, Checker] = {
    checker.name: checker
    for checker in (
        PinsAgree(),
        PinsFullLength(),
        PinConsistent(),
        EvaluatedVsHead(),
        RanksEqual(),
        IdKind(),
        LabelNotEvidence(),
        ModelPinned(),
        DraftPinned(),
        KeysComplete(),
        KeysAccepted(),
        TypesStrict(),
        ValueLimits(),
        CommandResolved(),
        DiffDeclared(),
        Distinct(),
        FlagsForbidden(),
        DocsCommands(),
        ClearToken(),
        GeometryDivides(),
        LimitsOrdered(),
        SchemaValid(),
        FieldsUnchanged(),
        NoSecrets(),
        ManifestStrict(),
        ObjectsContiguous(),
        ObjectsHashed(),
        DeltaChain(),
        Vocabulary(),
        NotDeployable(),
        SemanticFailRejects(),
        QualifiedComplete(),
        PlannedNotPassed(),
        SemanticOracle(),
        NegativeControl(),
        HitAttribution(),
        StreamDigest(),
        RankVectors(),
        AggregateConsistent(),
        Preimage(),
        Residual(),
        QualityGate(),
        MinSample(),
        RefsResolve(),
        RawRetained(),
        EvidenceRoot(),
        CommitBound(),
        ChecksumLists(),
        Subject(),
        NoTransfer(),
        ClaimNoTransfer(),
        ScopeCovered(),
        WithinEvidence(),
        Recompute(),
        DenominatorDeclared(),
        ExecutionRevision(),
        Repetitions(),
        AttainableSignificance(),
        Uncertainty(),
        OutputLengthBand(),
        QualityAttached(),
        SkippedDeclared(),
        OutputContract(),
        TargetDraftPinned(),
        TestedVsConfigured(),
        FiveSections(),
        Pair(),
        Platform(),
        BuiltFrom(),
        PrecedesContainer(),
        SameDescriptor(),
        PostCanary(),
        RecomputeEquivalent(),
        Transitions(),
        SelfTest(),
        BootIdentity(),
        UnitConsistent(),
        StatisticNamed(),
        PercentileSupport(),
        StopReason(),
        ThinkingMode(),
        CacheState(),
        ConcurrencyReached(),
        ErrorsZero(),
        DurationWarmup(),
        CoverageExact(),
        FiniteNumbers(),
        BytesPlausible(),
        MemoryKinds(),
        HarnessPinned(),
        DateWindow(),
        SourceState(),
        HonestTokenCount(),
        AccuracyInPerformance(),
        RepeatProbe(),
        SameDeployment(),
        OneDenominator(),
        SameInputs(),
        SamplingParams(),
        HardwareIdentity(),
        OneVariable(),
        DistinctInputs(),
        RegressionThreshold(),
        Comparable(),
    )
}


def checker_for(name: str, at: Location) -> Checker:
    """The checker of an invariant; `InputError` (UNKNOWN_NAME) for one that this version does not have."""
    checker = CHECKERS.get(name)
    if checker is None:
        near = difflib.get_close_matches(name, CHECKERS, n=1)
        fix = f"did you mean '{near[0]}'?" if near else f"the checkers of this version are {', '.join(sorted(CHECKERS))}"
        raise InputError(Code.UNKNOWN_NAME, f"there is no checker {name!r}", at=at, fix=fix)
    return checker


def parameter_problems(checker: Checker, given: Parameters) -> Iterator[Problem]:
    """Everything wrong with the parameters of a checker by its own schema; pointers count from the parameters."""
    if _conformance(checker).holds(given):
        return
    from jsonschema import Draft202012Validator

    parameters: Any = given  # jsonschema takes JSON of any shape
    for error in Draft202012Validator(checker.parameters).iter_errors(parameters):
        for problem in explain(error):
            yield problem if checker.parameters.get("properties") else replace(problem, fix="remove it: this checker has no parameters")


@cache
def _conformance(checker: Checker) -> Conformance:
    return Conformance(checker.parameters)
