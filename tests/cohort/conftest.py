import polars as pl
import pytest

import counterpath as cp


@pytest.fixture(scope="session")
def ward():
    return cp.load_example_ward()


@pytest.fixture
def read():
    """`Cohort.from_tables` on plain dictionaries, with outcome `y` in days unless told otherwise."""

    def read_dicts(observations, treatments=None, static=None, **options):
        def frame(table):
            return None if table is None else pl.DataFrame(table, strict=False)

        options = {"outcome": "y", "time_unit": "day"} | options
        return cp.Cohort.from_tables(frame(observations), frame(treatments), frame(static), **options)

    return read_dicts
