import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import lognorm, norm

import counterpath as cp
from counterpath.cohort.transforms import Log, Robust, Standard, fit_transform, normal_log_likelihood

FAMILIES = [
    Standard(),
    Log(foot=1e-12, knee=1.0),
    Log(lower=-40.0, foot=0.5, knee=250.0),
    Log(foot=1e-9, knee=1e-6),
    Robust(centre=0.0, scale=1.0),
    Robust(centre=120.0, scale=0.03),
    Robust(centre=-1e-3, scale=1e4),
]
POSITIVE = st.floats(1e-9, 1e9)


def domain(transform, positive):
    """Values that the transform takes, over many orders of magnitude, and where they are measured from."""
    if isinstance(transform, Log):
        return transform.lower + positive, abs(transform.lower)
    return np.concatenate([-positive, [0.0], positive]), abs(getattr(transform, "centre", 0.0))


@pytest.mark.parametrize("transform", FAMILIES, ids=str)
@given(values=hnp.arrays(float, st.integers(1, 20), elements=POSITIVE))
def test_the_way_back_is_the_way_back(transform, values):
    outcome, origin = domain(transform, values)
    outcome = outcome[outcome > getattr(transform, "lower", -np.inf)]
    back = transform.inverse(transform.forward(outcome))
    # relative to the number itself, or to the origin where that is larger and rounds the difference
    assert (np.abs(back - outcome) <= 1e-9 * np.maximum(np.abs(outcome), origin)).all()


@pytest.mark.parametrize("transform", FAMILIES, ids=str)
@given(values=hnp.arrays(float, st.integers(2, 30), elements=st.floats(-30, 30)))
def test_quantiles_go_through_the_inverse_as_they_are(transform, values):
    transformed = np.sort(values)
    outcome = transform.inverse(transformed)
    assert (np.diff(outcome) >= 0).all()
    for level in (0.1, 0.5, 0.9):
        quantile = np.quantile(transformed, level, method="inverted_cdf")
        assert np.quantile(outcome, level, method="inverted_cdf") == transform.inverse(np.array([quantile]))[0]


@pytest.mark.parametrize("transform", FAMILIES, ids=str)
def test_forward_increases(transform):
    outcome, _ = domain(transform, np.geomspace(1e-6, 1e6, 200))
    assert (np.diff(transform.forward(np.sort(outcome))) > 0).all()


@pytest.mark.parametrize("transform", FAMILIES, ids=str)
def test_log_slope_is_the_log_of_the_derivative(transform):
    scale = getattr(transform, "knee", getattr(transform, "scale", 1.0))
    origin = getattr(transform, "lower", getattr(transform, "centre", 0.0))
    distance = np.concatenate([np.linspace(0.05, 0.95, 19), np.linspace(1.05, 5.0, 20)])
    if not isinstance(transform, Log):
        distance = np.concatenate([-distance, distance])
    outcome, step = origin + scale * distance, scale * 1e-6
    slope = (transform.forward(outcome + step) - transform.forward(outcome - step)) / (2 * step)
    # central differences: truncation 1e-12, rounding of the outcome's own size over the step
    tolerance = 1e-8 + 4 * np.finfo(float).eps * np.max(np.abs(outcome)) / step
    np.testing.assert_allclose(transform.log_slope(outcome), np.log(slope), atol=tolerance, rtol=0)


@pytest.mark.parametrize("unit", [1.0, 1e-3, 1e3, 7.5])
@pytest.mark.parametrize(
    ("draw", "chosen"),
    [
        (lambda rng: np.exp(rng.normal(1.0, 0.8, 4_000)), "log"),
        (lambda rng: rng.normal(50.0, 3.0, 4_000), "standard"),
        (lambda rng: 100.0 + rng.standard_t(2, 4_000), "robust"),
    ],
    ids=["log-normal", "normal", "Student t with 2 degrees of freedom"],
)
def test_auto_finds_the_scale_in_any_unit(draw, chosen, unit):
    outcome = unit * draw(np.random.default_rng(0))
    assert fit_transform("auto", outcome, None).name == chosen


def test_auto_takes_no_log_of_what_reaches_its_bound():
    outcome = np.exp(np.random.default_rng(0).normal(size=500))
    outcome[0] = 0.0
    assert fit_transform("auto", outcome, None).name != "log"


def test_a_few_outcomes_near_zero_do_not_stretch_the_log():
    """The smallest twentieth is told apart by difference: what is gone lies one step below the foot, not twenty."""
    outcome = np.exp(np.random.default_rng(0).normal(2.0, 1.0, 1_000))
    outcome[:20] = 1e-8
    transform = fit_transform("log", outcome, 0.0)
    assert isinstance(transform, Log)
    assert transform.foot == pytest.approx(np.quantile(outcome, 0.05), rel=0.05)  # two digits are kept
    below = transform.forward(np.array([1e-8, transform.foot]))
    assert below[1] - below[0] == pytest.approx(1.0)


def test_auto_on_a_constant_stays_standard():
    assert fit_transform("auto", np.full(10, 3.0), None).name == "standard"


def test_the_likelihood_is_that_of_scipy():
    outcome = np.exp(np.random.default_rng(0).normal(0.5, 0.7, 500))
    logs = np.log(outcome)
    exact = np.mean(lognorm.logpdf(outcome, s=logs.std(), scale=np.exp(logs.mean())))
    mine = normal_log_likelihood(Log(foot=float(outcome.min()), knee=float(outcome.max())), outcome)
    assert mine - 0.5 * (1 + np.log(2 * np.pi)) == pytest.approx(exact, abs=1e-12)


def test_a_wide_gaussian_on_the_log_scale_keeps_a_sane_mean():
    transform = fit_transform("log", np.array([1.0, 10.0, 100.0]), None)
    draws = np.random.default_rng(0).normal(0.0, 3.0, 200_000)
    outcome = transform.inverse(draws)
    # knee (P(z > 0) + E[z; z > 0] + E[exp z; z < 0]); on a plain log it would be knee exp(9 / 2) = 90 knee
    exact = 100.0 * (0.5 + 3 / np.sqrt(2 * np.pi) + np.exp(4.5) * norm.cdf(-3.0))
    assert exact < 2 * transform.knee
    assert abs(outcome.mean() - exact) < 4 * outcome.std() / np.sqrt(len(outcome))


def test_log_is_taken_from_the_lower_bound():
    transform = fit_transform("log", np.array([11.0, 12.0, 14.0]), 10.0)
    assert (transform.lower, transform.knee) == (10.0, 4.0)
    np.testing.assert_allclose(transform.forward(np.array([12.0, 14.0, 18.0])), [np.log(0.5), 0.0, 1.0])


@pytest.mark.parametrize("outcome", [[1.0, 0.0, -2.0], [-1.0, -2.0, -3.0]])
def test_log_refuses_what_is_not_positive_and_names_the_remedy(outcome):
    with pytest.raises(
        cp.CohortError, match=r"needs training outcomes above 0, and \d are not. Use transform='robust'"
    ):
        fit_transform("log", np.array(outcome), None)


def test_robust_takes_its_constants_from_the_middle():
    outcome = np.concatenate([np.random.default_rng(0).normal(5.0, 2.0, 20_000), [1e6, 1e6]])
    transform = fit_transform("robust", outcome, None)
    # the median of a normal sample has standard error 1.25 std / √n, the quartile range about 1.17 std / √n
    assert abs(transform.centre - 5.0) < 4 * 1.25 * 2.0 / np.sqrt(20_000)
    assert abs(transform.scale - 2.0) < 4 * 1.17 * 2.0 / np.sqrt(20_000)


def test_nothing_to_fit():
    with pytest.raises(cp.CohortError, match="no outcome"):
        fit_transform("auto", np.array([]), None)


def test_a_patient_at_the_bound_can_be_used_though_no_training_patient_was_there():
    transform = fit_transform("log", np.array([0.5, 2.0, 8.0]), 0.0)
    scaled = transform.forward(np.array([0.0, 0.25, 0.5]))
    assert np.isfinite(scaled).all()
    np.testing.assert_allclose(transform.inverse(scaled), [0.0, 0.25, 0.5], atol=1e-12)
    assert transform.inverse(np.array([-50.0]))[0] == 0.0
