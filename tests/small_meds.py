"""A data set of the Medical Event Data Standard, small enough to read."""

from datetime import datetime, timedelta

import polars as pl

ZERO = datetime(2150, 1, 1, 8)
KINDS = {
    "subject_id": pl.Int64,
    "time": pl.Datetime("us"),
    "code": pl.String,
    "numeric_value": pl.Float32,
    "unit": pl.String,
    "stay": pl.Int64,
    "order": pl.Int64,
}
SPEC = {
    "time_unit": "hour",
    "stay": {"begins": "re:IN//.*", "ends": "OUT", "number": "stay"},
    "outcome": {"pressure": {"codes": ["LAB//art", "LAB//cuff"], "unit": "mmHg", "range": [10, 200]}},
    "covariates": {"rate": {"codes": "LAB//rate"}},
    "static": {"sex": {"codes": "re:SEX//(.*)"}, "age": {"codes": "MEDS_BIRTH", "value": "years"}},
    "treatments": {
        "drug": {"starts": "DRUG//ON", "ends": "DRUG//OFF", "pair_by": ["stay", "order"], "unit": "mg/h"},
        "pill": {"codes": "PILL"},
    },
}


def row(subject, hours, code, value=None, *, unit=None, stay=None, order=None):
    time = None if hours is None else ZERO + timedelta(hours=hours)
    return (subject, time, code, value, unit, stay, order)


def stay(subject=1, number=7, begin=0.0):
    """A stay of ten hours: pressures, a titrated drug whose new rate is listed before the old one's end, a pill."""
    at = {"stay": number}
    return [
        row(subject, begin, "IN//ward", **at),
        row(subject, begin + 1, "LAB//art", 80.0, **at),
        row(subject, begin + 1, "DRUG//ON", 2.0, unit="mg/h", order=number * 10 + 1, **at),
        row(subject, begin + 2, "LAB//rate", 60.0, **at),
        row(subject, begin + 3, "DRUG//ON", 4.0, unit="mg/h", order=number * 10 + 2, **at),
        row(subject, begin + 3, "DRUG//OFF", 4.0, unit="mg", order=number * 10 + 1, **at),
        row(subject, begin + 4, "PILL", 5.0),
        row(subject, begin + 5, "LAB//cuff", 70.0, **at),
        row(subject, begin + 6, "DRUG//OFF", 12.0, unit="mg", order=number * 10 + 2, **at),
        row(subject, begin + 10, "OUT", **at),
    ]


def person(subject=1):
    return [row(subject, None, "SEX//F"), row(subject, -24 * 365.2425 * 40, "MEDS_BIRTH")]


def write_meds(folder, *shards, drop=(), names=None, **casts):
    """A data set of these files; `names` are other names of columns."""
    for number, rows in enumerate(shards):
        table = pl.DataFrame(rows, schema=KINDS, orient="row").drop(*drop).cast(casts).rename(names or {})
        path = folder / "data" / "train" / f"{number}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        table.write_parquet(path)
    return folder
