"""Records in formats that hospitals keep: from their files to a cohort."""

from counterpath.importers.meds import read_meds
from counterpath.importers.meds_spec import MedsSpec, read_spec
from counterpath.importers.mimic_extract import read_mimic_extract

__all__ = ["MedsSpec", "read_meds", "read_mimic_extract", "read_spec"]
