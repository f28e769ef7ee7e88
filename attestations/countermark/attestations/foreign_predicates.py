"""What standard predicates of others say, in typed form: SLSA provenance and verification summaries, simple verification results, test
results, OMS model signatures.

Sources: slsa.dev, provenance v1 and v0.2, verification_summary v1; in-toto attestation framework, svr and test-result; OpenSSF Model
Signing, signature v1.0. Their parsing rules let fields be added, so that unknown ones are passed over; a field that they require and
that is absent or of another type makes the predicate unreadable here, and it then says nothing. Whoever signed it is not asked here.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Final, TypeAlias

from countermark.attestations.codes import Outcome
from countermark.attestations.errors import InputError
from countermark.attestations.located import JsonValue
from countermark.attestations.outcomes import suite_outcome
from countermark.attestations.predicate_fields import Fields
from countermark.attestations.predicate_types import (
    MODEL_SIGNATURE,
    SIMPLE_VERIFICATION_RESULT,
    SIMPLE_VERIFICATION_RESULT_V01,
    SLSA_PROVENANCE,
    SLSA_PROVENANCE_V02,
    TEST_RESULT,
    VERIFICATION_SUMMARY,
)


@dataclass(frozen=True, slots=True)
class Resource:
    """An in-toto ResourceDescriptor: what was used, and its digests by algorithm."""

    uri: str | None
    name: str | None
    digest: Mapping[str, str]

    @classmethod
    def of(cls, fields: Fields) -> "Resource":
        """Any of its fields may be absent."""
        return cls(fields.text("uri", optional=True), fields.text("name", optional=True), fields.texts_by_name("digest"))


@dataclass(frozen=True, slots=True)
class Provenance:
    """Who built it, how, and from what; `materials` are v1's resolvedDependencies."""

    builder: str
    build_type: str
    materials: tuple[Resource, ...]
    invocation: str | None
    started: str | None
    finished: str | None

    @classmethod
    def v1(cls, fields: Fields) -> "Provenance":
        """SLSA provenance v1."""
        definition, details = fields.object("buildDefinition"), fields.object("runDetails")
        definition.object("externalParameters")
        metadata = details.object("metadata", optional=True)
        return cls(
            details.object("builder").needed("id"),
            definition.needed("buildType"),
            tuple(map(Resource.of, definition.objects("resolvedDependencies", optional=True))),
            metadata.text("invocationId", optional=True),
            metadata.time("startedOn", optional=True),
            metadata.time("finishedOn", optional=True),
        )

    @classmethod
    def v02(cls, fields: Fields) -> "Provenance":
        """SLSA provenance v0.2; where the build's configuration came from is the first of its materials."""
        source = fields.object("invocation", optional=True).object("configSource", optional=True)
        metadata = fields.object("metadata", optional=True)
        materials = tuple(map(Resource.of, fields.objects("materials", optional=True)))
        configuration = Resource.of(source)
        return cls(
            fields.object("builder").needed("id"),
            fields.needed("buildType"),
            materials if configuration in (Resource(None, None, {}), *materials) else (configuration, *materials),
            metadata.text("buildInvocationId", optional=True),
            metadata.time("buildStartedOn", optional=True),
            metadata.time("buildFinishedOn", optional=True),
        )

    @property
    def outcome(self) -> None:
        """That it was built is no verdict."""

    def brief(self) -> str:
        """In a line."""
        return f"built by {self.builder} as {self.build_type} from {len(self.materials)} materials"


@dataclass(frozen=True, slots=True)
class Summary:
    """A verification summary: what a verifier concluded about a resource, under which policy."""

    verifier: str
    result: str
    resource: str
    policy: Resource
    levels: tuple[str, ...]
    verified: str | None
    inputs: tuple[Resource, ...]

    @classmethod
    def of(cls, fields: Fields) -> "Summary":
        """SLSA verification_summary v1."""
        return cls(
            fields.object("verifier").needed("id"),
            fields.one_of("verificationResult", ("PASSED", "FAILED")),
            fields.needed("resourceUri"),
            Resource.of(fields.object("policy")),
            fields.texts("verifiedLevels"),
            fields.time("timeVerified", optional=True),
            tuple(map(Resource.of, fields.objects("inputAttestations", optional=True))),
        )

    @property
    def outcome(self) -> Outcome:
        """Whatever levels a FAILED one lists, it is a failure."""
        return Outcome.PASS if self.result == "PASSED" else Outcome.FAIL

    def brief(self) -> str:
        """In a line."""
        return f"{self.result} by {self.verifier}: {', '.join(self.levels) or 'no level'}"


@dataclass(frozen=True, slots=True)
class VerificationResult:
    """A simple verification result: properties that a verifier found to hold. There is no other way to say no than to leave one out."""

    verifier: str
    verified: str
    properties: tuple[str, ...]

    @classmethod
    def v01(cls, fields: Fields) -> "VerificationResult":
        """in-toto svr v0.1."""
        return cls._of(fields, "timeCreated")

    @classmethod
    def v02(cls, fields: Fields) -> "VerificationResult":
        """in-toto svr v0.2; its time is met under both names."""
        return cls._of(fields, "timeCreated" if fields.has("timeCreated") else "timeVerified")

    @classmethod
    def _of(cls, fields: Fields, time: str) -> "VerificationResult":
        return cls(fields.object("verifier").needed("id"), fields.time(time) or "", fields.texts("properties"))

    @property
    def outcome(self) -> Outcome:
        """One that states no property verified nothing."""
        return Outcome.PASS if self.properties else Outcome.NOT_RUN

    def brief(self) -> str:
        """In a line."""
        return f"verified by {self.verifier}: {', '.join(self.properties) or 'nothing'}"


@dataclass(frozen=True, slots=True)
class SuiteResult:
    """The result of a test suite, with the names of its tests."""

    result: str
    configuration: tuple[Resource, ...]
    url: str | None
    passed: tuple[str, ...]
    warned: tuple[str, ...]
    failed: tuple[str, ...]

    @classmethod
    def of(cls, fields: Fields) -> "SuiteResult":
        """in-toto test-result v0.1."""
        return cls(
            fields.one_of("result", ("PASSED", "WARNED", "FAILED")),
            tuple(map(Resource.of, fields.objects("configuration"))),
            fields.text("url", optional=True),
            fields.texts("passedTests", optional=True),
            fields.texts("warnedTests", optional=True),
            fields.texts("failedTests", optional=True),
        )

    @property
    def outcome(self) -> Outcome:
        """A suite that says PASSED and lists a test that failed has failed."""
        return Outcome.FAIL if self.failed else suite_outcome({"result": self.result})

    def brief(self) -> str:
        """In a line."""
        return f"{self.result}: {len(self.passed)} passed, {len(self.warned)} warned, {len(self.failed)} failed"


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A file of a model, or a shard of one, as the serialisation names it."""

    name: str
    algorithm: str
    digest: str


@dataclass(frozen=True, slots=True)
class ModelSignature:
    """The files of a signed model. The statement's subject is a hash over their digests, and of no file."""

    method: str
    hash_type: str
    files: tuple[ModelFile, ...]

    @classmethod
    def of(cls, fields: Fields) -> "ModelSignature":
        """OMS signature v1.0."""
        serialization = fields.object("serialization")
        files = tuple(
            ModelFile(item.needed("name"), item.needed("algorithm"), item.needed("digest")) for item in fields.objects("resources")
        )
        return cls(serialization.needed("method"), serialization.needed("hash_type"), files)

    @property
    def outcome(self) -> None:
        """A signature over files is no verdict."""

    def brief(self) -> str:
        """In a line."""
        return f"{len(self.files)} model files, serialised by {self.method} with {self.hash_type}"


Foreign: TypeAlias = Provenance | Summary | VerificationResult | SuiteResult | ModelSignature

_READ: Final[dict[str, Callable[[Fields], Foreign]]] = {
    SLSA_PROVENANCE: Provenance.v1,
    SLSA_PROVENANCE_V02: Provenance.v02,
    VERIFICATION_SUMMARY: Summary.of,
    SIMPLE_VERIFICATION_RESULT_V01: VerificationResult.v01,
    SIMPLE_VERIFICATION_RESULT: VerificationResult.v02,
    TEST_RESULT: SuiteResult.of,
    MODEL_SIGNATURE: ModelSignature.of,
}


@dataclass(frozen=True, slots=True)
class Reading:
    """What a predicate says: `claim` where it is of a standard type and can be read; `problem` why it cannot; neither for other types."""

    claim: Foreign | None = None
    problem: str | None = None

    @classmethod
    def of(cls, predicate_type: str, predicate: JsonValue) -> "Reading":
        """Total: what cannot be read is told, never raised, since anybody may have signed anything."""
        read = _READ.get(predicate_type)
        if read is None:
            return cls()
        try:
            return cls(read(Fields(predicate, "/predicate")))
        except InputError as error:
            return cls(problem=str(error.message))

    @property
    def outcome(self) -> Outcome | None:
        """The verdict, if it is a predicate that has one; an error where it cannot be read."""
        return Outcome.ERROR if self.problem else self.claim.outcome if self.claim else None

    def to_json(self) -> dict[str, JsonValue] | None:
        """The fields of the claim; none where there is no claim."""
        value = json.loads(json.dumps(asdict(self.claim))) if self.claim else None
        return value if isinstance(value, dict) else None
