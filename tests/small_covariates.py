"""Patients with covariates at irregular times, on which outcomes can be simulated."""

import numpy as np
import polars as pl

import counterpath as cp


def covariates(patients=40, hours=40, seed=0):
    """Covariates at irregular times, sex and age; an outcome that is not used."""
    rng = np.random.default_rng(seed)
    rows = []
    for patient in range(patients):
        times = np.unique(np.concatenate([[0.0], rng.uniform(0, hours, 60), [hours + 0.5]]))
        level = rng.normal(size=3)
        for time in times:
            row = dict(zip(("rate", "cells", "sodium"), level + rng.normal(size=3), strict=True))
            hidden = (rng.random(3) < 0.4) & (time <= hours)
            row = {name: None if gone else value for (name, value), gone in zip(row.items(), hidden, strict=True)}
            rows.append({"patient": patient, "time": time, "pressure": 60.0 if time == 0 else None, **row})
    static = pl.DataFrame(
        {"patient": range(patients), "sex": ["F", "M"] * (patients // 2), "age": rng.normal(60, 10, patients)}
    )
    return cp.Cohort.from_tables(pl.DataFrame(rows), None, static, outcome="pressure", time_unit="hour")
