"""Files of a MEDS data set are held against the standard, in batches, and one that is not as it should be is named."""

import os
import subprocess
import sys
from functools import partial

import numpy as np
import polars as pl
import pytest
from small_meds import SPEC, person, row, stay, write_meds

import counterpath as cp
from counterpath.importers import meds_shards


@pytest.fixture
def write(tmp_path):
    return partial(write_meds, tmp_path / "meds")


def read(folder, spec=SPEC, **options):
    return cp.read_meds(folder, spec, progress=False, **options)


@pytest.mark.parametrize(
    ("casts", "message"),
    [
        ({"subject_id": pl.String}, "subject_id"),
        ({"time": pl.String}, "time"),
        ({"numeric_value": pl.String}, "numeric_value"),
        ({"code": pl.Binary}, "code"),
    ],
)
def test_a_column_of_another_type(write, casts, message):
    with pytest.raises(cp.CohortError, match=rf"is not as MEDS wants it\..*{message}"):
        read(write(person() + stay(), **casts))


@pytest.mark.parametrize("drop", ["subject_id", "time", "code"])
def test_a_column_that_is_missing(write, drop):
    with pytest.raises(cp.CohortError, match=rf"is not as MEDS wants it\. Missing required columns: {drop}"):
        read(write(person() + stay(), drop=[drop]))


def test_a_row_of_nobody(write):
    with pytest.raises(cp.CohortError, match="has rows without a subject_id"):
        read(write([*person(), *stay(), row(None, 11.0, "LAB//art", 80.0)]))


@pytest.mark.parametrize("batch", [1, 2, 3, 5, 100])
def test_faults_are_found_wherever_a_batch_ends(write, batch, monkeypatch):
    """Looking at a few rows at a time finds what looking at all would."""
    monkeypatch.setattr(meds_shards, "BATCH", batch)
    good = person(1) + stay(1) + person(2) + stay(2)
    assert len(read(write(good))) == 2
    for place in range(2, len(good) // 2 - 1):
        swapped = [*good]
        swapped[place], swapped[place + 1] = swapped[place + 1], swapped[place]
        if swapped[place][1] == swapped[place + 1][1]:
            continue
        with pytest.raises(cp.CohortError, match="times of subject 1 are not in order"):
            read(write(swapped))
    with pytest.raises(cp.CohortError, match="rows of subject 1 do not stand together"):
        read(write([*good, row(1, 50.0, "PILL", 1.0)]))
    with pytest.raises(cp.CohortError, match="has rows without a code, the first of subject 2"):
        read(write([*good, row(2, 50.0, None)]))


def test_a_row_without_a_time_hides_no_disorder(write, monkeypatch):
    rows = person() + stay()
    rows[6], rows[7] = rows[7], rows[6]
    assert rows[6][1] == rows[7][1]  # at one instant they may stand in any order
    rows[4], rows[5] = rows[5], rows[4]
    rows.insert(5, row(1, None, "NOTE"))
    for batch in (1, 2, 100):
        monkeypatch.setattr(meds_shards, "BATCH", batch)
        with pytest.raises(cp.CohortError, match="times of subject 1 are not in order"):
            read(write(rows))


@pytest.mark.slow
def test_memory_does_not_grow_with_the_rows_of_a_file(tmp_path):
    """The order of four times as many rows is checked in hardly more memory, though they are one row group."""
    program = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from counterpath.importers.meds_shards import _check_order\n"
        "_check_order(Path(sys.argv[1]))\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
    )

    def peak_mb(rows):
        path = tmp_path / f"{rows}.parquet"
        minutes = np.arange(rows) % 10_000
        table = {
            "subject_id": np.arange(rows) // 10_000,
            "time": np.datetime64("2150-01-01", "us") + (minutes * 60_000_000).astype("timedelta64[us]"),
        }
        pl.DataFrame(table).with_columns(code=pl.lit("LAB//one")).write_parquet(path, row_group_size=rows)
        done = subprocess.run(
            [sys.executable, "-c", program, path], check=True, capture_output=True, text=True, env=os.environ
        )
        return int(done.stdout) / 1024  # Linux counts in kB

    assert peak_mb(4_000_000) < peak_mb(1_000_000) + 30  # their columns are 90 MB


def test_progress_counts_the_files_unless_it_is_silenced(write, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    folder = write(person(1) + stay(1), person(2) + stay(2, 8))
    cp.read_meds(folder, SPEC)
    said = capsys.readouterr().err
    assert "Reading MEDS" in said
    assert "100%" in said
    cp.read_meds(folder, SPEC, progress=False)
    assert capsys.readouterr().err == ""


def splits(folder, content):
    (folder / "metadata").mkdir(exist_ok=True)
    path = folder / "metadata" / "subject_splits.parquet"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        content.write_parquet(path)


@pytest.mark.parametrize(
    "content",
    [
        b"hi",
        pl.DataFrame({"subject_id": [1]}),
        pl.DataFrame({"patient": [1], "split": ["train"]}),
        pl.DataFrame({"subject_id": ["one"], "split": ["train"]}),
    ],
    ids=["no Parquet", "no split", "no subject_id", "no number"],
)
def test_splits_that_are_damaged(write, content):
    folder = write(person() + stay())
    splits(folder, content)
    with pytest.raises(cp.CohortError, match=r"subject_splits\.parquet is damaged, or lacks the columns subject_id"):
        read(folder, split="train")


def test_no_splits_at_all(write):
    with pytest.raises(cp.CohortError, match=r"nothing says who is in 'train'\. Leave split=… out"):
        read(write(person() + stay()), split="train")


def test_where_all_is_left_out_the_error_says_why(write):
    """Not that there is no such code: there is."""
    spec = SPEC | {"outcome": {"pressure": {"codes": ["LAB//art", "LAB//cuff"], "range": [1, 2]}}}
    with pytest.raises(cp.CohortError, match=r"No usable record of pressure .*2 values of pressure lie outside of its"):
        read(write(person() + stay()), spec)
    rows = [own if own[2] != "IN//ward" else row(1, 0.0, "IN//ward") for own in person() + stay()]
    with pytest.raises(cp.CohortError, match=r"No code that begins a stay .*1 stay begins without a number"):
        read(write(rows))
