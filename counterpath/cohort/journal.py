"""What was changed or left out on the way from table to cohort."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field

from counterpath.cohort.findings import CohortWarning, Finding


@dataclass
class Journal:
    """Every repair with its count, so that nothing passes silently."""

    findings: list[Finding] = field(default_factory=list)

    def unasked(self, finding: Finding) -> None:
        """Harmless, but nobody asked for it: also a warning."""
        self.findings.append(finding)
        warnings.warn(str(finding), CohortWarning, stacklevel=2)

    def asked(self, finding: Finding) -> None:
        """A repair that the user asked for."""
        self.findings.append(finding)
