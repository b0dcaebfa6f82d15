"""A file as MIMIC-Extract writes it, small enough to read."""

import warnings

import numpy as np
import pandas as pd

from counterpath.importers.mimic_extract import COVARIATES, RANGES

STAY = ["subject_id", "hadm_id", "icustay_id"]
VARIABLES = ["diastolic blood pressure", "heart rate"]
LEVELS = ["LEVEL2", "Aggregation Function"]


def tables(stays=((1, 10, 100, 4), (2, 20, 200, 3))):
    """Means by variable, interventions and patients; each stay is subject, admission, stay and hours."""
    rows = [(*stay[:3], hour) for stay in stays for hour in range(stay[3])]
    index = pd.MultiIndex.from_tuples(rows, names=[*STAY, "hours_in"])
    columns = pd.MultiIndex.from_tuples([(name, "mean") for name in VARIABLES], names=LEVELS)
    means = pd.DataFrame(np.nan, index=index, columns=columns)
    means[("diastolic blood pressure", "mean")] = 60.0 + np.arange(len(index))
    means[("heart rate", "mean")] = [80.0] + [np.nan] * (len(index) - 1)
    given = pd.DataFrame(0, index=index, columns=["vent", "vaso"])
    given.iloc[0] = 1
    people = pd.DataFrame(
        {"gender": ["F", "M"] * len(stays), "age": [70.5, 45.0] * len(stays)},
    ).head(len(stays))
    people.index = pd.MultiIndex.from_tuples([stay[:3] for stay in stays], names=STAY)
    return {"vitals_labs_mean": means, "interventions": given, "patients": people}


def long_stays(stays=12, hours=40, seed=0):
    """The paper's variables, each seen in every third hour, with plausible values."""
    rng = np.random.default_rng(seed)
    content = tables([(number, number, number, hours) for number in range(1, stays + 1)])
    means = content["vitals_labs_mean"]
    names = ["diastolic blood pressure", *COVARIATES]
    low, high = np.array([RANGES[name] for name in names]).T
    is_seen, place = rng.random((len(means), len(names))) < 1 / 3, rng.normal(0.4, 0.03, (len(means), len(names)))
    values = np.where(is_seen, low + (high - low) * place, np.nan)
    columns = pd.MultiIndex.from_tuples([(name, "mean") for name in names], names=LEVELS)
    content["vitals_labs_mean"] = pd.DataFrame(values, index=means.index, columns=columns)
    content["interventions"]["vaso"] = (rng.random(len(means)) < 0.3).astype(int)
    content["interventions"]["vent"] = (rng.random(len(means)) < 0.3).astype(int)
    return content


def write(path, content):
    """All tables into one file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTables does not like the names that MIMIC-Extract has chosen
        for name, table in content.items():
            table.to_hdf(path, key=name, mode="a")
    return path
