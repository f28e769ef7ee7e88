"""Rules about benchmark records (catalogue BM-03, BM-11 to BM-14, BM-31 to BM-33): a number says no more than what was measured."""

from collections.abc import Iterator

from countermark.attestations.codes import Outcome
from countermark.attestations.findings import Finding
from countermark.contracts.checkers.parameters import many, operand, pointer, pointers, text, whole
from countermark.contracts.checkers.records import Block, RecordChecker, integer, record_fields
from countermark.contracts.pins import ValueType, referred, shown


class ExecutionRevision(RecordChecker):
    """Reads which runtime was measured."""

    name = "bench.execution-revision"
    rule = "A run records the revision and the image digest that were executed."
    ids = ("BM-03",)
    parameters = record_fields("revision", "image", revision=pointer("the executed revision"), image=pointer("the executed image digest"))

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for each that is missing or cut short."""
        for name, kind in (("revision", ValueType.COMMIT), ("image", ValueType.MANIFEST)):
            found = block.maybe(name)
            value = referred(found.value, kind) if found else None
            if not (isinstance(value, str) and kind.form and kind.form.fullmatch(value)):
                observed = shown(found.value) if found else "nothing"
                yield self.violation(
                    block.place(name), required=f"the executed {name}", observed=observed, fix=f"record the executed {name}"
                )


class TargetDraftPinned(RecordChecker):
    """Reads which target and which draft were measured."""

    name = "bench.target-draft-pinned"
    rule = "A run names target and draft apart, each by a whole revision, and the number of draft tokens."
    ids = ("BM-04",)
    parameters = record_fields(
        "target",
        "draft",
        "tokens",
        target=pointer("the target's revision"),
        draft=pointer("the draft's revision"),
        tokens=pointer("how many tokens the draft proposes"),
    )

    def applies(self, block: Block) -> bool:
        """A run without speculation has no draft to name."""
        tokens = block.maybe("tokens")
        return not (tokens and tokens.value == 0)

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for each part that is missing, and one when the two are one."""
        whole_revision = ValueType.REVISION
        values = {}
        for name in ("target", "draft"):
            found = block.maybe(name)
            values[name] = referred(found.value, whole_revision) if found else None
            if not (isinstance(values[name], str) and whole_revision.form and whole_revision.form.fullmatch(str(values[name]))):
                observed = shown(found.value) if found else "nothing"
                yield self.violation(
                    block.place(name), required=whole_revision.words, observed=observed, fix=f"record the whole revision of the {name}"
                )
        if values["target"] == values["draft"] and values["draft"] is not None:
            yield self.violation(
                block.place("draft"), required="another revision than the target's", observed=shown(values["draft"]), fix="record the draft"
            )
        tokens = block.maybe("tokens")
        if not (tokens and isinstance(tokens.value, int) and not isinstance(tokens.value, bool) and tokens.value > 0):
            observed = shown(tokens.value) if tokens else "nothing"
            yield self.violation(
                block.place("tokens"), required="a number of tokens", observed=observed, fix="record how many tokens the draft proposes"
            )


class TestedVsConfigured(RecordChecker):
    """Compares what is claimed with what was tested, not with what is configured."""

    name = "bench.tested-vs-configured"
    rule = "A claim states the tokens that were tested, not the limit that is configured."
    ids = ("BM-30",)
    parameters = record_fields(
        "claimed",
        "tested",
        claimed=operand("the tokens of the claim: a pointer, or a fact"),
        tested=pointer("the tokens that were tested"),
        configured=pointer("the limit that is configured"),
    )

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for a claim above what was tested, and one for a test above the limit."""
        claimed, tested = block.operand("claimed"), block.one("tested")
        if integer(claimed) > integer(tested):
            required = f"at most {tested.value}, which were tested (line {tested.at.line})"
            yield self.violation(
                claimed.at, required=required, observed=str(claimed.value), fix="claim what was tested, or test what is claimed"
            )
        configured = block.maybe("configured")
        if configured and integer(tested) > integer(configured):
            required = f"at most {configured.value}, the configured limit"
            yield self.violation(tested.at, required=required, observed=str(tested.value), fix="record the limit of the run")


class Repetitions(RecordChecker):
    """Counts repetitions and boots."""

    name = "bench.repetitions"
    rule = "A claim rests on enough repetitions of one task and enough boots."
    ids = ("BM-11",)
    parameters = record_fields(
        "boots",
        "repeats",
        boots=operand("the number of boots"),
        repeats=operand("how often one task was repeated"),
        min_boots=whole("how many boots are needed; 3 by default", minimum=1),
        min_repeats=whole("how many repetitions are needed; 1 by default", minimum=1),
    )

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for each number that is too small."""
        for name, default in (("boots", 3), ("repeats", 1)):
            found, least = block.operand(name), block.given.get(f"min_{name}", default)
            if integer(found) < 1:
                yield self.violation(found.at, required=f"a number of {name}", observed=shown(found.value), fix=f"record the {name}")
            elif isinstance(least, int) and integer(found) < least:
                fix = "repeat the run, or call it a single observation"
                yield self.violation(
                    found.at, required=f"{least} {name}", observed=shown(found.value), fix=fix, outcome=Outcome.INCONCLUSIVE
                )


class AttainableSignificance(RecordChecker):
    """Computes the smallest two-sided p that a number of pairs can reach: 2 / 2^n, the exact sign test."""

    name = "bench.attainable-significance"
    rule = "The number of pairs can reach the significance that is claimed."
    ids = ("BM-12",)
    parameters = record_fields(
        "pairs", pairs=operand("the number of pairs"), alpha_percent=whole("the level in percent; 5 by default", minimum=1, maximum=50)
    )

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding when no outcome of so few pairs could be significant."""
        pairs, alpha = block.operand("pairs"), block.given.get("alpha_percent", 5)
        if integer(pairs) < 1:
            yield self.violation(pairs.at, required="a number of pairs", observed=shown(pairs.value), fix="record the pairs")
        elif isinstance(alpha, int) and alpha * 2 ** integer(pairs) <= 2 * 100:
            required = f"pairs that can reach p < 0.{alpha:02d}"
            observed = f"{pairs.value}, which reach {2 / 2 ** integer(pairs):.3g} at best"
            yield self.violation(
                pairs.at,
                required=required,
                observed=observed,
                fix="measure more pairs, or claim no significance",
                outcome=Outcome.INCONCLUSIVE,
            )


class Uncertainty(RecordChecker):
    """Reads the interval of a number."""

    name = "bench.uncertainty"
    rule = "A number has an interval or a dispersion, or is called a point observation."
    ids = ("BM-13",)
    parameters = record_fields(
        "uncertainty", uncertainty=pointers("the interval or dispersion"), label=pointer("what the number is called")
    )

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding when there is neither."""
        label = block.maybe("label")
        for found in block.all("uncertainty"):
            if found.value in (None, "", [], {}) and not (label and "observation" in str(label.value).lower()):
                required, fix = "an interval, or the words `point observation`", "give the interval, or call it a point observation"
                yield self.violation(found.at, required=required, observed=shown(found.value), fix=fix, outcome=Outcome.INCONCLUSIVE)
            elif isinstance(found.value, str | bool):
                yield self.violation(found.at, required="numbers", observed=shown(found.value), fix="give the interval in numbers")


class OutputLengthBand(RecordChecker):
    """Compares the lengths of the outputs of two arms."""

    name = "bench.output-length-band"
    rule = "The arms of a comparison produced outputs of about the same length, else their rates are no speed-up."
    ids = ("BM-14",)
    parameters = record_fields(
        "baseline",
        "candidate",
        baseline=pointers("completion tokens of the baseline, one by prompt"),
        candidate=pointers("completion tokens of the candidate, in the same order"),
        least_percent=whole("the least share; 90 by default", minimum=1, maximum=100),
        most_percent=whole("the greatest share; 110 by default", minimum=100),
    )

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for the totals, and one for each prompt."""
        baseline, candidate = ([integer(found) for found in block.all(name)] for name in ("baseline", "candidate"))
        places = [found.at for found in block.all("candidate")]
        if len(baseline) != len(candidate):
            yield self.violation(
                places[0], required=f"{len(baseline)} prompts", observed=f"{len(candidate)}", fix="compare the same prompts"
            )
            return
        pairs = [
            (sum(baseline), sum(candidate), block.place("candidate"), "in total"),
            *zip(baseline, candidate, places, ["here"] * len(places), strict=True),
        ]
        least, most = block.given.get("least_percent", 90), block.given.get("most_percent", 110)
        for base, own, at, where in pairs:
            if isinstance(least, int) and isinstance(most, int) and not least * base <= own * 100 <= most * base:
                required = f"{least} to {most} % of {base} tokens {where}"
                fix = "compare outputs of one length, or claim no speed-up"
                yield self.violation(at, required=required, observed=f"{own}", fix=fix, outcome=Outcome.INCONCLUSIVE)


class QualityAttached(RecordChecker):
    """Reads the quality verdict beside a rate."""

    name = "bench.quality-attached"
    rule = "A performance claim carries the quality verdict of its deployment, and allows no ranking when that is not a pass."
    ids = ("BM-31",)
    parameters = record_fields(
        "quality", "ranking", quality=pointer("the quality verdict"), ranking=pointer("whether a ranking is allowed")
    )

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for a verdict that is missing, and one for a ranking that it forbids."""
        quality, ranking = block.maybe("quality"), block.one("ranking")
        if quality is None:
            yield self.violation(block.place("quality"), required="a quality verdict", observed="nothing", fix="attach the quality report")
        if (quality is None or quality.value not in (True, "pass", "passed")) and ranking.value is not False:
            required = "false, because the quality verdict is no pass"
            yield self.violation(
                ranking.at, required=required, observed=shown(ranking.value), fix="set it to false, and quote the rate with the verdict"
            )


class SkippedDeclared(RecordChecker):
    """Reads the checks behind an early stop."""

    name = "quality.skipped-declared"
    rule = "A check that did not run is marked as skipped with its cause, never as failed or passed."
    ids = ("BM-32",)
    parameters = record_fields(
        "ran",
        "outcome",
        ran=pointer("whether the check ran"),
        outcome=pointer("its outcome"),
        cause=pointer("why it did not run"),
    )

    def applies(self, block: Block) -> bool:
        """The check did not run."""
        return block.one("ran").value is False

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for another outcome, and one for a cause that is missing."""
        outcome = block.one("outcome")
        if outcome.value not in ("skipped", "not-run", "not_run"):
            yield self.violation(outcome.at, required="skipped", observed=shown(outcome.value), fix="mark it as skipped")
        cause = block.maybe("cause")
        if "cause" in block.given and not (cause and str(cause.value).strip()):
            yield self.violation(block.place("cause"), required="why it did not run", observed="nothing", fix="record the cause")


class OutputContract(RecordChecker):
    """Applies a rule to a raw response."""

    name = "quality.output-contract"
    rule = "The verdict over an output contract is that of the raw response, unrepaired."
    ids = ("BM-33",)
    parameters = record_fields(
        "response",
        "passed",
        response=pointer("the raw response"),
        passed=pointer("the verdict"),
        exactly=text("what the whole response must be"),
        matches=text("regular expression that the whole response matches"),
        forbids=many("regular expressions that nothing in it matches", text("an expression")),
    )

    def applies(self, block: Block) -> bool:
        """There is a rule to apply."""
        return not {"exactly", "matches", "forbids"}.isdisjoint(block.given)

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding when the verdict is another one."""
        response, passed, given = block.one("response"), block.one("passed"), block.given
        raw = str(response.value)
        forbidden = given.get("forbids")
        kept = (
            ("exactly" not in given or raw == given["exactly"])
            and ("matches" not in given or block.case.expression(str(given["matches"])).fullmatch(raw) is not None)
            and not any(block.case.expression(str(it)).search(raw) for it in (forbidden if isinstance(forbidden, list) else ()))
        )
        if passed.value is not kept:
            required = f"{'true' if kept else 'false'}, by the raw response at line {response.at.line}"
            yield self.violation(passed.at, required=required, observed=shown(passed.value), fix="judge the raw response, without repair")
