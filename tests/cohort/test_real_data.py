"""Small real dosing studies become cohorts in a few lines."""

import numpy as np
import polars as pl
import pytest
from real_studies import read_csv, read_quinidine, read_remifentanil

import counterpath as cp

pytestmark = pytest.mark.data


def survives(cohort, folder):
    cohort.save(folder)
    loaded = cp.read_cohort(folder)
    return loaded.equals(cohort) and loaded.describe().equals(cohort.describe())


def outcomes(cohort):
    return int(np.sum(~np.isnan(cohort.records.values[:, 0])))


@pytest.fixture(scope="module")
def quinidine():
    return read_quinidine()


def test_quinidine(quinidine, tmp_path):
    assert len(quinidine) == 136
    assert outcomes(quinidine) == 361
    assert quinidine.events.rows == 1_028
    assert quinidine.events.is_dose.all()
    assert quinidine.observations["interval"].drop_nulls().len() == 249
    assert survives(quinidine, tmp_path / "quinidine")


def test_quinidine_has_covariates_that_change(quinidine):
    changes = quinidine.observations.group_by("Subject").agg(pl.col("glyco").drop_nulls().n_unique())
    assert (changes["glyco"] > 1).sum() > 20
    kinds = {v.name: v.kind for v in quinidine.schema.covariates}
    assert kinds["Creatinine"] == "categorical"
    assert kinds["glyco"] == "numeric"


def test_quinidine_is_checked(quinidine):
    report = quinidine.check()
    assert report.ok
    assert "always_given" in {f.code for f in report.findings}


@pytest.fixture(scope="module")
def remifentanil():
    return read_remifentanil()


def test_remifentanil(remifentanil, tmp_path):
    assert len(remifentanil) == 65
    assert outcomes(remifentanil) == 1_992
    assert not remifentanil.events.is_dose.any()
    assert remifentanil.check().ok
    assert survives(remifentanil, tmp_path / "remifentanil")


def test_remifentanil_infuses_what_the_study_says(remifentanil):
    given = remifentanil.treatments.with_columns(amount=pl.col("rate") * (pl.col("stop") - pl.col("start")))
    by_rate = given.group_by("ID").agg(pl.col("amount").sum())
    by_amount = read_csv("nlme_Remifentanil.csv").group_by("ID").agg(pl.col("Amt").sum())
    both = by_rate.join(by_amount, on="ID", how="full", coalesce=True)
    assert both.height == 65
    assert both.null_count().sum_horizontal().item() == 0
    np.testing.assert_allclose(both["amount"], both["Amt"], rtol=2e-3)


@pytest.fixture(scope="module")
def phenobarb():
    return cp.Cohort.from_frame(
        read_csv("nlme_Phenobarb.csv"),
        patient="Subject",
        time="time",
        outcome="conc",
        treatments={"phenobarbital": "dose"},
        static=["Wt", "Apgar"],
        time_unit="hour",
    )


def test_phenobarb(phenobarb, tmp_path):
    assert len(phenobarb) == 59
    assert phenobarb.events.rows == 589
    assert outcomes(phenobarb) == 155
    assert phenobarb.check().ok
    assert survives(phenobarb, tmp_path / "phenobarb")


def test_a_cut_of_phenobarb_loses_no_dose(phenobarb):
    cut = phenobarb.cut(24.0, ended="drop")
    source = phenobarb[cut.history.patients.to_list()]
    assert cut.history.events.rows + cut.plan.resolve(cut.history).rows == source.events.rows
    assert outcomes(cut.history) + cut.later.rows == outcomes(source)


@pytest.fixture(scope="module")
def pbcseq():
    return cp.Cohort.from_frame(
        read_csv("survival_pbcseq.csv"),
        patient="id",
        time="day",
        outcome="bili",
        covariates=[
            "ascites",
            "hepato",
            "spiders",
            "edema",
            "chol",
            "albumin",
            "alk.phos",
            "ast",
            "platelet",
            "protime",
        ],
        static=["trt", "age", "sex"],
        categorical="trt",
        follow_up_end="futime",
        time_unit="day",
        randomised=True,
    )


def test_pbcseq(pbcseq, tmp_path):
    assert len(pbcseq) == 312
    assert pbcseq.records.rows == 1_945
    assert pbcseq.schema.randomised
    assert pbcseq.schema.treatments == ()
    assert pbcseq.schema.static[0].levels == ("0", "1")
    assert np.isfinite(pbcseq.follow_up_end).all()
    assert (pbcseq.history_end == pbcseq.follow_up_end).all()
    assert survives(pbcseq, tmp_path / "pbcseq")


def test_pbcseq_says_that_effects_cannot_be_asked(pbcseq):
    report = pbcseq.check()
    assert report.ok
    assert "no_treatment" in {f.code for f in report.of("note")}
    assert "effects of plans cannot be asked" in repr(pbcseq)
