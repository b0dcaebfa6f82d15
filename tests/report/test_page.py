import html.parser
import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from small_models import small_tecde

import counterpath as cp
from counterpath.report.examples import ask_examples, usual_plans

pytestmark = pytest.mark.slow  # pages are drawn, models are compiled

PLANS = {"chemotherapy twice": cp.Plan.from_text("chemotherapy@0,2"), "nothing <at all>": cp.Plan.none()}


class Page(html.parser.HTMLParser):
    """Text, pictures and addresses of a page."""

    def __init__(self, text):
        super().__init__()
        self.words, self.pictures, self.addresses, self.open = [], [], [], []
        self.feed(text)
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "img"):
            self.open.append(tag)
        given = dict(attrs)
        if tag == "img":
            self.pictures.append(given)
        self.addresses += [given[name] for name in ("src", "href") if name in given]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"style", "script"} & set(self.open):
            self.words.append(data)


@pytest.fixture(scope="module")
def study():
    cohort = cp.load_tumor_growth(120, seed=3)
    return cohort[:90], cohort[90:]


@pytest.fixture(scope="module")
def evaluation(study):
    train, test = study
    return cp.LastValue(max_horizon=5.0).fit(train).evaluate(test, by="subgroup", progress=False)


@pytest.fixture(scope="module")
def page(evaluation, study, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "pages" / "report.html"
    other = cp.LastValue(max_horizon=5.0).fit(study[1]).evaluate(study[1], progress=False)
    found = cp.write_report(
        evaluation, path, plans=PLANS, better="lower", by="subgroup", at=50.0, others=[other], progress=False
    )
    assert found == path
    parsed = Page(path.read_text(encoding="utf-8"))
    assert not parsed.open, "every tag is closed"
    return parsed


def test_it_stands_alone(page):
    assert page.addresses
    assert all(address.startswith("data:image/svg+xml;base64,") for address in page.addresses)
    assert all(picture["alt"] for picture in page.pictures)


def test_the_verdict_comes_first(page, evaluation):
    assert page.text.index(evaluation.verdict) < page.text.index("Are the intervals honest")
    assert page.text.index("not a medical device") < page.text.index("Are the intervals honest")


def test_it_holds_what_a_reader_needs(page, evaluation):
    for part in (
        "Patients under two plans",
        "What “chemotherapy twice” changes against “nothing <at all>”",
        "Effect of the plan (treatment was randomised)",
        "no unmeasured confounding",
        "probability of benefit",
        "Beside other models",
        "The patients who were judged",
        "subgroup A",
        "Ready to fit",
        f"{evaluation.overall.points:,} outcomes",
        f"counterpath {cp.__version__}",
        "Seed 0",
    ):
        assert part in page.text, part


def test_names_cannot_break_the_page(page):
    assert "<at all>" in page.text  # as text, not as a tag


def test_a_model_with_training_shows_it_and_what_supports_it(trained, tmp_path):
    model, test = trained
    path = cp.write_report(model.evaluate(test, progress=False), tmp_path / "r.html", progress=False)
    page = Page(path.read_text())
    text = page.text
    assert "How much training stands behind these plans" in text
    assert re.search(r"“chemotherapy now”: (training holds|never observed)", text)
    assert "“no treatment”" in text
    assert "field_widths = (4,)" in text
    assert [picture["alt"] for picture in page.pictures].count("Scores by epoch of training") == 1


def test_its_effect_is_the_models(trained):
    model, test = trained
    examples = ask_examples(model, test, "tumor_volume", PLANS, 50.0, progress=False)
    one, other = PLANS.values()
    asked = {"horizons": [1.0, 3.0, 5.0], "draws": model.draws_to_judge, "progress": False}
    expected = model.effect(test.until(50.0), one, versus=other, **asked)
    np.testing.assert_allclose(examples.effect.draws, expected.draws, rtol=1e-4, atol=1e-6)  # other shapes
    np.testing.assert_array_equal(examples.effect.support.windows, expected.support.windows)
    assert examples.effect.label == expected.label


@pytest.fixture(scope="module")
def trained(study):
    return small_tecde(epochs=2).fit(*study, progress=False), study[1]


def test_a_cohort_without_treatments_has_no_plans(tmp_path):
    rng = np.random.default_rng(0)
    rows = {"patient": np.repeat(np.arange(20), 6), "time": np.tile(np.arange(6.0), 20), "y": rng.normal(size=120)}
    cohort = cp.Cohort.from_tables(pl.DataFrame(rows), outcome="y", time_unit="day")
    evaluation = cp.LastValue(max_horizon=2.0).fit(cohort).evaluate(cohort, progress=False)
    text = Page(cp.write_report(evaluation, tmp_path / "r.html", progress=False).read_text()).text
    assert "Patients under two plans" not in text
    assert "Are the intervals honest" in text


def test_an_infusion_goes_on_in_the_usual_plan():
    ward = cp.load_example_ward()
    names = [treatment.name for treatment in ward.schema.treatments]
    running = ward.schema.model_copy(update={"treatments": ward.schema.treatments[names.index("norepinephrine") :][:1]})
    plans = usual_plans(running)
    assert plans["norepinephrine from now on"] == cp.Plan.infusion("norepinephrine")
    assert plans["no treatment"] == cp.Plan.none()


def test_an_ensemble_shows_what_it_is_made_of(study, tmp_path):
    ensemble = cp.DeepEnsemble(small_tecde(epochs=2, seed=7), members=2).fit(*study, progress=False)
    ensemble.save(tmp_path / "e.safetensors")
    for model in (ensemble, cp.load(tmp_path / "e.safetensors")):
        assert model.seed == 7
        assert len(model.history_) == 4
        path = cp.write_report(model.evaluate(study[1], progress=False), tmp_path / "r.html", progress=False)
        page = Page(path.read_text())
        assert "members = 2" in page.text
        assert "Seed 7" in page.text
        assert "Scores by epoch of training" in [picture["alt"] for picture in page.pictures]
    assert repr(ensemble).startswith("DeepEnsemble(TECDE(max_horizon=5, ")


def test_a_forecast_that_is_off_to_one_side_gets_no_tick(evaluation, tmp_path, monkeypatch):
    said = {"95% intervals held 95.0% of outcomes: well calibrated": "✓"}
    said["95% intervals held 95.0% of outcomes: well calibrated; outcomes are lower than predicted"] = "⚠"
    for verdict, mark in said.items():
        monkeypatch.setattr(type(evaluation), "verdict", property(lambda _, verdict=verdict: verdict))
        path = cp.write_report(evaluation, tmp_path / "r.html", plans=PLANS, at=50.0, progress=False)
        assert f"Calibration {mark}" in Page(path.read_text()).text


@pytest.mark.parametrize("longest", [0.11, 0.42, 26 / 60, 5.0])
def test_the_last_of_even_horizons_is_the_longest(longest):
    horizons = cp.LastValue(max_horizon=longest).even_horizons()
    assert horizons[-1] == longest
    assert len(horizons) == 5


def test_what_cannot_be_reported_is_said(evaluation, tmp_path):
    with pytest.raises(cp.CohortError, match="does not know its model"):
        cp.write_report(replace(evaluation, estimator=None), tmp_path / "r.html")
    with pytest.raises(cp.CohortError, match="compares two plans, by name; 1 were given"):
        cp.write_report(evaluation, tmp_path / "r.html", plans={"none": cp.Plan.none()}, progress=False)
    elsewhere = evaluation.estimator.evaluate(evaluation.cohort, at=50.0, horizons=[2.0], progress=False)
    with pytest.raises(cp.CohortError, match="judged at other times"):
        cp.write_report(evaluation, tmp_path / "r.html", others=[elsewhere], progress=False)
    with pytest.raises(cp.CohortError, match="nobody to show"):
        cp.write_report(evaluation, tmp_path / "r.html", at=500.0, progress=False)
    assert not list(tmp_path.iterdir())
