"""What a plan is made of: doses, infusions, and rates that go on."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from counterpath.cohort.schema import Strict

PatientId = int | str
Elapsed = Annotated[float, Field(ge=0.0)]
Amount = Annotated[float, Field(gt=0.0)]


class PlannedDose(Strict):
    """A single dose at an elapsed time; the usual one where `dose` is left out, for all where `patient` is."""

    treatment: str
    time: Elapsed
    dose: Amount | None = None
    patient: PatientId | None = None


class PlannedInfusion(Strict):
    """A rate from `start` until `stop` (for good where left out), the usual one where `rate` is left out."""

    treatment: str
    start: Elapsed
    stop: Elapsed | None = None
    rate: Amount | None = None
    patient: PatientId | None = None

    @model_validator(mode="after")
    def _stops_after_its_start(self) -> PlannedInfusion:
        if self.stop is not None and not self.stop > self.start:
            raise ValueError(
                f"the infusion of {self.treatment!r} stops at {self.stop:g}, not after its start at {self.start:g}"
            )
        return self


class KeptRunning(Strict):
    """Present rates go on: for all where `patient` is left out, but not of the treatments in `without`."""

    patient: PatientId | None = None
    without: tuple[str, ...] = ()
