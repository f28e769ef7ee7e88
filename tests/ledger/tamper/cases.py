"""All cases of the table: each module enters its own as it is imported."""

from . import (
    cases_admission,
    cases_backups,
    cases_derived,
    cases_entries,
    cases_exports,
    cases_forms,
    cases_history,
    cases_keys,
    cases_notes,
    cases_outside,
    cases_proofs,
    cases_reader,
    cases_tables,
    cases_times,
    cases_witness,
)
from .lab import CASES

__all__ = ["CASES", "MODULES"]

MODULES = (
    cases_admission,
    cases_backups,
    cases_derived,
    cases_entries,
    cases_exports,
    cases_forms,
    cases_history,
    cases_keys,
    cases_notes,
    cases_outside,
    cases_proofs,
    cases_reader,
    cases_tables,
    cases_times,
    cases_witness,
)
