"""Worlds made of a user's records: nobody is learned from who is asked about, and nothing that came later is known."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from real_studies import folder as real_folder
from shell import in_one_line, run
from small_covariates import covariates

import counterpath as cp
from counterpath.experiments.record_worlds import FIRST_CUT, HOURS, REAL, SEMI_SYNTHETIC, last_ones
from counterpath.experiments.scales import SCALES

DEMO, SMOKE = SCALES["demo"], SCALES["smoke"]


def persons(cohort):
    return {str(patient).split("/")[0] for patient in cohort.patients}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Forty stays of twenty persons, with an outcome at irregular times."""
    cohort = covariates()
    rng = np.random.default_rng(1)
    observations = cohort.observations.with_columns(
        pl.col("patient").map_elements(lambda i: f"{i // 2}/{i}", return_dtype=pl.String),
        pressure=pl.Series(rng.normal(60, 5, cohort.records.rows)),
    )
    static = cohort.static.select(
        pl.col("patient").map_elements(lambda i: f"{i // 2}/{i}", return_dtype=pl.String), "sex", "age"
    )
    given = pl.DataFrame({"patient": observations["patient"].unique().sort()}).with_columns(
        treatment=pl.lit("vaso"), start=3.0, stop=25.0, rate=1.0
    )
    made = cp.Cohort.from_tables(
        observations,
        given,
        static,
        outcome="pressure",
        time_unit="hour",
        time_zero="as given",
        stay_separator="/",
    )
    place = tmp_path_factory.mktemp("records") / "icu"
    made.save(place)
    return place


@pytest.mark.parametrize("world", [REAL, SEMI_SYNTHETIC], ids=lambda world: world.name)
def test_who_is_asked_about_is_learned_from_by_nobody(world, data):
    own = world.made_of(data)
    asked = persons(own.parts[1])
    assert len(own.parts[1]) == 10
    splits = []
    for seed in (0, 1):
        train, validation = own.learners(DEMO, seed)
        assert (len(train), len(validation)) == (24, 6)
        assert not asked & (persons(train) | persons(validation))
        assert not persons(train) & persons(validation)
        splits.append(persons(validation))
    assert splits[0] != splits[1]


def test_real_records_are_asked_about_an_hour_before_an_outcome(data):
    asked = REAL.made_of(data).asked(DEMO, "factual")
    cohort = cp.read_cohort(data)
    assert len(asked.history) > 100
    for name, end, outcome in zip(asked.history.patients, asked.history.history_end, asked.outcomes[:, 0], strict=True):
        own = cohort[name.split("@")[0]]
        row = np.flatnonzero(np.isclose(own.records.times, end + 1.0))
        assert own.records.values[row, 0] == outcome
        assert 8 < end <= HOURS - 1
    assert asked.history.records.rows == sum(
        int((cohort[name.split("@")[0]].records.times <= end).sum())
        for name, end in zip(asked.history.patients, asked.history.history_end, strict=True)
    )
    assert np.all(asked.history.records.times <= asked.history.history_end[asked.history.records.patient_of_row])
    planned = asked.plan.resolve(asked.history)  # an infusion from hour 3 to 25
    assert set(planned.patient_of_row) == set(np.flatnonzero(asked.history.history_end < 25))


def test_simulated_outcomes_are_known_under_both_choices(data):
    world = SEMI_SYNTHETIC.made_of(data)
    factual, other = (world.asked(DEMO, protocol) for protocol in world.protocols(1.0))
    truth, ends = factual.study, factual.history.history_end.astype(int)
    rows = np.arange(len(ends))
    np.testing.assert_array_equal(factual.outcomes[:, 0], truth.outcomes_of_steps[rows, ends + 1])
    np.testing.assert_array_equal(other.history.history_end, factual.history.history_end)
    given, instead = (np.isin(rows, asked.plan.resolve(asked.history).patient_of_row) for asked in (factual, other))
    np.testing.assert_array_equal(given, truth.given[rows, ends])
    np.testing.assert_array_equal(instead, ~given)
    np.testing.assert_array_equal(other.outcomes[:, 0], truth.potential[rows, ends, (~given).astype(int)])
    np.testing.assert_array_equal(factual.seen[:, 0], truth.observed[rows, ends + 1])


def test_noise_grows_for_the_same_patients(data):
    world = SEMI_SYNTHETIC.made_of(data)
    usual, noisy = world.asked(DEMO, "factual"), world.asked(DEMO, "factual", 0.1)
    assert len(noisy.history) < len(usual.history)  # fewer forecasts, for all patients
    assert abs(noisy.history.history_end.mean() - usual.history.history_end.mean()) < 0.5  # as early and as late
    known = {name: i for i, name in enumerate(usual.history.patients)}
    same = [known[name] for name in noisy.history.patients]
    np.testing.assert_allclose(noisy.study.noise, 10 * usual.study.noise[same])


def test_the_last_moments_are_asked_about():
    whose, place = last_ones(np.array([3, 0, 5]), 6)
    assert whose.tolist() == [0, 0, 2, 2]
    assert place.tolist() == [1, 2, 6, 7]
    assert last_ones(np.array([3, 2, 5]), 1)[0].tolist() == [0, 1, 2]


def test_what_is_too_short_is_refused(tmp_path):
    covariates(patients=20, hours=20).save(tmp_path / "short")
    result = run("reproduce", "real-icu", "--scale", "smoke", "--data", tmp_path / "short", "--to", tmp_path / "to")
    assert result.exit_code == 1
    assert "short has 0 patients with 30 hours of records" in in_one_line(result.stderr)


@pytest.fixture
def of_another_user(data, tmp_path):
    """A file of the same name."""
    cp.read_cohort(data)[:36].save(tmp_path / "icu")
    return tmp_path / "icu"


def test_records_of_two_users_are_not_mixed(data, of_another_user, tmp_path):
    asked = ["reproduce", "real-icu", "--scale", "smoke", "--model", "LastValue", "--to", tmp_path / "to"]
    assert run(*asked, "--data", data).exit_code == 0
    result = run(*asked, "--data", of_another_user)
    assert result.exit_code == 1
    assert "holds results about icu, and the content of icu is another" in in_one_line(result.stderr)
    moved = tmp_path / "moved"
    shutil.copytree(data, moved)
    assert run(*asked, "--data", moved).exit_code == 0  # the same records, wherever they lie


@pytest.mark.parametrize("world", [REAL, SEMI_SYNTHETIC], ids=lambda world: world.name)
def test_fits_and_answers_of_two_users_are_not_mixed(world, data, of_another_user):
    """Also where a run ended before anything was written."""
    assert world.made_of(data).kept_as != world.made_of(of_another_user).kept_as
    assert world.made_of(data).kept_as.startswith(world.name)


@pytest.mark.parametrize("world", [REAL, SEMI_SYNTHETIC], ids=lambda world: world.name)
def test_who_learns_from_last_cuts_alone_has_them_where_questions_are(world, data):
    own = world.made_of(data)
    train, _ = own.learners(DEMO, 0)
    shortened, asked = own.up_to_the_last_cut(train, 1.0), own.asked(DEMO, "factual").history.history_end
    assert shortened.patients.equals(train.patients)
    cuts = shortened.history_end - 1.0
    assert cuts.min() >= FIRST_CUT
    assert cuts.min() < asked.min() + 4
    assert abs(np.median(cuts) - np.median(asked)) < 5
    outcome = shortened.records.values[:, 0]
    last = [outcome[own.stop - 1] for own in map(slice, shortened.records.offsets[:-1], shortened.records.offsets[1:])]
    assert not np.isnan(last).any()


def test_forecasts_for_one_person_count_as_one(data):
    for world in (REAL, SEMI_SYNTHETIC):
        asked = world.made_of(data).asked(DEMO, "factual")
        names = [name.split("/")[0] for name in asked.history.patients]
        of_name = dict(zip(names, asked.persons, strict=True))
        assert [of_name[name] for name in names] == asked.persons.tolist()
        assert len(set(of_name.values())) == len(of_name) == 5


def test_records_in_other_units_of_time_are_refused(data, tmp_path):
    cohort = cp.read_cohort(data)
    replace(cohort, schema=cohort.schema.model_copy(update={"time_unit": "day"})).save(tmp_path / "days")
    result = run("reproduce", "real-icu", "--scale", "smoke", "--data", tmp_path / "days", "--to", tmp_path / "to")
    assert result.exit_code == 1
    assert "days counts in days, and these experiments ask an hour ahead" in in_one_line(result.stderr)


def test_what_is_wrong_with_records_is_said_once_and_before_any_work(tmp_path):
    (tmp_path / "meds" / "data").mkdir(parents=True)
    (tmp_path / "text.h5").write_text("hello")
    for name, said in (
        ("typo.h5", "There is no"),
        ("meds", "counterpath import"),
        ("text.h5", "not an HDF5 file that pandas can read"),
    ):
        result = run("reproduce", "all", "--scale", "demo", "--data", tmp_path / name, "--to", tmp_path / "to")
        assert result.exit_code == 1
        assert result.stderr.count(said) == 1
        assert "cell" not in result.stdout + result.stderr


def test_without_records_what_is_about_them_is_left_out_and_said(tmp_path):
    result = run("reproduce", "all", "--scale", "demo", "--to", tmp_path)
    said = in_one_line(result.stdout + result.stderr)
    assert "Left out: 'real-icu' is about records that you have." in said
    assert result.exit_code == 1
    assert "Nothing is left to run at scale 'demo'." in said


@pytest.mark.slow
@pytest.mark.data
def test_every_table_and_figure_of_real_records_is_made(tmp_path):
    """The demo extract, as MIMIC-Extract writes it."""
    file = Path(real_folder()).parent / "all_hourly_data_mimic3demo.h5"
    asked = ["--scale", "smoke", "--data", file, "--to", tmp_path, "--json"]
    result = run("reproduce", "real-icu", "semi-synthetic", *asked)
    assert result.exit_code == 0, result.stderr
    for name in ("real-icu", "semi-synthetic"):
        text, content = (tmp_path / f"{name}.md").read_text(), json.loads((tmp_path / f"{name}.json").read_text())
        assert "35 training patients of `all_hourly_data_mimic3demo.h5`, 9 for stopping" in text
        assert "ot measured" not in text
        assert str(file.parent) not in text + json.dumps(content)
        assert (tmp_path / f"{name}.svg").exists()
        assert {cell["model"] for cell in content["cells"]} >= {"BNCDE", "BNCDE, balanced", "TECDE.paper, balanced"}
