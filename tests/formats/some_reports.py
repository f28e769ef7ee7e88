"""Findings and reports of every shape, and a few that are what commands give."""

from hypothesis import strategies as st

from countermark.attestations.codes import Code, ExitCode, Outcome, Severity
from countermark.attestations.errors import Location
from countermark.attestations.findings import Finding
from countermark.cli.report import Check, Report

TEXTS = st.text(max_size=12) | st.sampled_from(
    ["::error::x\n::warning::y", "a,b:c%0A", "| a | b", "</testcase>]]>&", "\x1b[2J", "`<b>*x*_y_"]
)
LOCATIONS = st.builds(
    Location,
    st.sampled_from(["profiles/a b.yaml", "/srv/contract.yaml", "--require restore@tp=4", "ü:1,2.md", "../up.json"]) | TEXTS,
    st.none() | st.integers(1, 10**6),
    st.none() | st.integers(1, 500),
    st.none() | TEXTS,
)
FINDINGS = st.builds(
    Finding,
    st.sampled_from(Code),
    st.sampled_from(Outcome),
    fix=TEXTS,
    severity=st.sampled_from(Severity),
    checker=st.none() | st.sampled_from(["pins.agree", "docs.commands"]) | TEXTS,
    location=st.none() | LOCATIONS,
    subject=st.none() | TEXTS,
    required=st.none() | TEXTS,
    observed=st.none() | TEXTS,
    evidence=st.lists(TEXTS, max_size=2).map(tuple),
)
FOUND = st.lists(FINDINGS, max_size=4).map(tuple)
REPORTS = st.builds(
    Report,
    exit=st.sampled_from([code for code in ExitCode if code is not ExitCode.INTERNAL]),
    evaluated=st.integers(0, 9),
    of=st.integers(0, 9),
    findings=FOUND,
    not_evaluated=st.lists(TEXTS, max_size=2).map(tuple),
    checks=st.lists(st.builds(Check, TEXTS, TEXTS, st.sampled_from(Outcome), FOUND), max_size=4).map(tuple),
)

PINNED = "5ec6a9953ad5d39120298bbfc26e95a6fa4b1dc3"
DRIFTED = Finding(
    Code.CONTRACT_VIOLATED,
    Outcome.FAIL,
    "set /source/commit to the pinned commit",
    checker="pins.agree",
    location=Location("profiles/dflash.yaml", 4, 3, "/source/commit"),
    required=f"{PINNED} (8 of 9 places)",
    observed=PINNED[:-1] + "0",
)
HELD = Check("serving@2", "pins-whole (pins.full-length)", Outcome.PASS)
BROKEN = Check("serving@2", "pins-agree (pins.agree)", Outcome.FAIL, (DRIFTED,))
FAILED = Report(ExitCode.NO, 2, 2, (DRIFTED,), checks=(BROKEN, HELD))
GOOD = Report(ExitCode.YES, 1, 1, checks=(HELD,))
