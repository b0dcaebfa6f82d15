import pandas as pd
import polars as pl
import pytest

import counterpath as cp
from counterpath.cohort.values import reads_as_numbers

VISITS = {"patient": [1, 1, 2, 2], "time": [0.0, 1.0, 0.0, 1.0], "y": [1.0, 2.0, 3.0, 4.0]}


@pytest.mark.parametrize(
    ("column", "numbers"),
    [
        ([1, 2], True),
        ([None, None], True),
        (["1", "2.5", "<0.5"], True),
        (["1", "<0.5"], True),
        (["1", "<0.5", ">9"], False),
        (["1", " ", ""], True),
        (["a", " ", ""], False),
        ([True, False], False),
    ],
)
def test_which_columns_read_as_numbers(column, numbers):
    assert reads_as_numbers(pl.Series(column, strict=False)) is numbers


def test_blank_text_is_a_gap(read):
    cohort = read(VISITS | {"mood": ["good", "", "  ", "bad"]})
    assert cohort.schema.covariates[0].levels == ("bad", "good")
    assert cohort.observations["mood"].to_list() == ["good", None, None, "bad"]


def test_blank_text_among_numbers_is_a_gap(read):
    assert read(VISITS | {"y": ["1", "", " ", "4"]}).observations["y"].to_list() == [1.0, 4.0]


def test_text_with_white_space_around_it_is_kept(read):
    assert read(VISITS | {"mood": ["good", "good ", "bad", "bad"]}).schema.covariates[0].levels == (
        "bad",
        "good",
        "good ",
    )


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_codes_with_gaps_are_whole_numbers_in_their_order(frame):
    table = frame(VISITS | {"ward": [10, None, 2, 1]})
    cohort = cp.Cohort.from_tables(table, outcome="y", time_unit="day", categorical="ward")
    assert cohort.schema.covariates[0].levels == ("1", "2", "10")
    given_back = pl.DataFrame({"ward": list(cohort.observations["ward"])}, strict=False)["ward"]
    assert given_back.fill_nan(None).to_list() == [10, None, 2, 1]


@pytest.mark.parametrize(
    ("codes", "levels"),
    [
        ([0.5, 10.0, 2.0, None], ("0.5", "2.0", "10.0")),
        (["10", "9", "1", "9"], ("1", "9", "10")),
        (["10", "9", "b", "a"], ("10", "9", "a", "b")),
        ([True, False, None, True], ("false", "true")),
    ],
)
def test_levels_are_in_the_order_of_numbers_only_where_all_are(read, codes, levels):
    assert read(VISITS | {"ward": codes}, categorical="ward").schema.covariates[0].levels == levels


def test_an_outcome_with_text_is_not_told_to_be_categorical(read):
    with pytest.raises(cp.CohortError, match="Leave the cell empty where nothing was measured") as error:
        read(VISITS | {"y": ["1", "2", "3", "high"]})
    assert "categorical" not in str(error.value)
    with pytest.raises(cp.CohortError, match=r"or pass categorical=\['x'\]"):
        read(VISITS | {"x": ["1", "2", "3", "high"]})


def test_an_outcome_with_decimal_commas_is_told_to_use_points(read):
    with pytest.raises(cp.CohortError, match="Write decimals with a point"):
        read(VISITS | {"y": ["3,4", "3,5", "3,6", "3,7"]})


def test_fractions_of_new_patients_are_kept_where_training_had_whole_numbers(tmp_path):
    """In frames, and in files: nothing is cut off."""
    whole = pl.DataFrame(VISITS | {"y": [80, 90, 85, 70], "beats": [60, 61, 62, 63], "on": [True, False, True, True]})
    train = cp.Cohort.from_tables(whole, outcome="y", time_unit="day")
    assert train.observations.schema.to_python() | {"time": float} == {
        "patient": int, "time": float, "y": int, "beats": int, "on": bool
    }  # fmt: skip
    fractions = {"y": [80.9, 90.0, None, 70.25], "beats": [60.0, 61.0, 62.0, 63.0], "on": [0.0, 1.0, 0.5, None]}
    new = cp.Cohort.from_tables(pl.DataFrame(VISITS | fractions), like=train)
    assert new.observations["y"].to_list() == fractions["y"]
    assert new.observations["on"].to_list() == fractions["on"]
    assert new.observations["beats"].dtype == pl.Int64
    new.save(tmp_path / "new")
    again = cp.read_cohort(tmp_path / "new")
    assert again.observations.equals(new.observations)
    assert again.equals(new)
