"""Writes the made-up example data set that ships with the package. Run it from the root of the repository."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl

FOLDER = Path("counterpath/cohort/ward")
PATIENTS = 30

SCHEMA = """\
# Made-up patients of an imaginary ward; see counterpath.load_example_ward.
format = 1
time_unit = "hour"
follow_up_end = "discharge"
outcomes = [{ name = "pressure", unit = "mmHg", lower = 0.0 }]
covariates = [{ name = "heart_rate", unit = "1/min" }, { name = "rhythm" }]
static = [{ name = "age", unit = "years" }, { name = "sex" }]
treatments = [{ name = "fluid", unit = "ml" }, { name = "norepinephrine", unit = "µg/kg/min" }]
"""


def main() -> None:
    """Pressure relaxes to a level that fluid and norepinephrine raise; visits come at random."""
    rng = np.random.default_rng(2024)
    observations, treatments, static = [], [], []
    for number in range(1, PATIENTS + 1):
        patient = f"W{number:02d}"
        admission = datetime(2031, 3, 1) + timedelta(minutes=int(rng.integers(0, 60 * 24 * 90)))
        hours = float(rng.uniform(20, 72))
        age = int(rng.integers(34, 90))
        doses = sorted(rng.uniform(0.2, hours * 0.7, rng.integers(0, 4)))
        infused = rng.random() < 0.5
        start = float(rng.uniform(1, 8))
        switch, stop = start + float(rng.uniform(3, 8)), start + float(rng.uniform(10, 20))
        rates = (round(float(rng.uniform(0.05, 0.2)), 2), round(float(rng.uniform(0.02, 0.3)), 2))

        def moment(hour: float, admission: datetime = admission) -> datetime:
            return (admission + timedelta(hours=hour)).replace(second=0, microsecond=0)

        fibrillates = rng.random() < 0.3
        pressure, base = rng.normal(62, 6), rng.normal(78, 6)
        time, last = 0.0, 0.0
        while time < hours:
            step = time - last
            rate = rates[0] * (start <= time < switch) + rates[1] * (switch <= time < stop)
            fluid = sum(np.exp(-(time - dose) / 3.0) for dose in doses if dose < time)
            aim = base + (120 * rate if infused else 0.0) + 7 * fluid
            pressure = aim + (pressure - aim) * np.exp(-step / 4.0) + rng.normal(0, 2.0)
            row: dict[str, object] = {"patient": patient, "time": moment(time)}
            row["pressure"] = round(float(pressure)) if rng.random() < 0.9 else None
            row["heart_rate"] = round(float(110 - 0.4 * (pressure - 60) + rng.normal(0, 6)))
            row["rhythm"] = ("fibrillation" if fibrillates and time > 6 else "sinus") if rng.random() < 0.3 else None
            observations.append(row)
            last, time = time, time + float(rng.exponential(2.5)) + 0.25
        for dose in doses:
            amount = float(rng.choice([250, 500, 500, 1000]))
            treatments.append({"patient": patient, "treatment": "fluid", "start": moment(dose), "dose": amount})
        for begin, end, rate in ((start, switch, rates[0]), (switch, stop, rates[1])) if infused else ():
            interval = {"start": moment(begin), "stop": moment(min(end, hours)), "rate": rate}
            treatments.append({"patient": patient, "treatment": "norepinephrine"} | interval)
        sex = str(rng.choice(["female", "male"]))
        static.append({"patient": patient, "age": age, "sex": sex, "discharge": moment(hours + 1)})
    FOLDER.mkdir(exist_ok=True)
    for name, rows in (("observations", observations), ("treatments", treatments), ("static", static)):
        pl.DataFrame(rows, infer_schema_length=None).write_csv(FOLDER / f"{name}.csv", datetime_format="%Y-%m-%d %H:%M")
    (FOLDER / "schema.toml").write_text(SCHEMA, encoding="utf-8")


if __name__ == "__main__":
    main()
