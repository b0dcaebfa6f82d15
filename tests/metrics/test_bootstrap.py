import numpy as np
import pytest

from counterpath.metrics import Ratio, mean_by_patient, paired_ratio, patient_resampling


def two_methods(rng, number=100):
    """Correlated scores of two methods, three points per patient; the true ratio is 1.2."""
    patients = np.repeat(np.arange(number), 3)
    hard = rng.gamma(4, size=number)[patients]
    quirk = rng.gamma(4, size=number)[patients]  # of the method and the patient, so points do not average it out
    reference = hard * rng.uniform(0.5, 1.5, size=patients.size)
    scores = 1.2 * hard * (quirk / 4) * rng.uniform(0.5, 1.5, size=patients.size)
    return scores, reference, patients


def test_identical_scores_give_exactly_one():
    scores, _, patients = two_methods(np.random.default_rng(0))
    assert paired_ratio(scores, scores, patients) == Ratio(1.0, 1.0, 1.0, 0.95)


def test_a_constant_factor_is_certain():
    scores, _, patients = two_methods(np.random.default_rng(0))
    ratio = paired_ratio(3 * scores, scores, patients)
    np.testing.assert_allclose([ratio.value, ratio.lower, ratio.upper], 3, rtol=1e-13)


def test_value_is_the_ratio_of_means():
    scores, reference, patients = two_methods(np.random.default_rng(1))
    ratio = paired_ratio(scores, reference, patients)
    assert ratio.value == pytest.approx(scores.mean() / reference.mean())
    assert ratio.lower < ratio.value < ratio.upper


def test_interval_covers_the_truth_and_needs_the_patients():
    rng = np.random.default_rng(2)
    repeats = 400
    with_patients, without = [], []
    for seed in range(repeats):
        scores, reference, patients = two_methods(rng)
        for hits, labels in ((with_patients, patients), (without, None)):
            ratio = paired_ratio(scores, reference, labels, resamples=300, seed=seed)
            hits.append(ratio.lower <= 1.2 <= ratio.upper)
    standard_error = np.sqrt(0.95 * 0.05 / repeats)
    # 3 standard errors, and one point for the percentile bootstrap at 100 patients and 300 resamples
    assert abs(np.mean(with_patients) - 0.95) < 3 * standard_error + 0.01
    assert np.mean(without) < 0.95 - 6 * standard_error


def test_both_ends_agree_with_the_delta_method():
    scores, reference, patients = two_methods(np.random.default_rng(7), number=2_000)
    ratio = paired_ratio(scores, reference, patients, resamples=5_000)
    linear = mean_by_patient((scores - ratio.value * reference) / reference.mean(), patients)
    ends = (np.array([ratio.lower, ratio.upper]) - ratio.value) / linear.standard_error
    # A 2.5% quantile of 5,000 normal resamples has a standard error of 0.04; as much again for skewness
    np.testing.assert_allclose(ends, [-1.96, 1.96], atol=3 * 0.04 + 0.04)


def test_pairing_narrows_the_interval():
    scores, reference, patients = two_methods(np.random.default_rng(3))
    order = np.random.default_rng(4).permutation(100)
    other_patients = reference.reshape(100, 3)[order].ravel()
    paired = paired_ratio(reference * 1.1 + 0.1 * scores, reference, patients)
    unpaired = paired_ratio(reference * 1.1 + 0.1 * scores, other_patients, patients)
    assert paired.upper - paired.lower < 0.5 * (unpaired.upper - unpaired.lower)


def test_interval_follows_the_level_and_the_seed():
    scores, reference, patients = two_methods(np.random.default_rng(5))
    wide, narrow = (paired_ratio(scores, reference, patients, level=level) for level in (0.95, 0.5))
    assert wide.lower < narrow.lower < narrow.upper < wide.upper
    assert paired_ratio(scores, reference, patients, seed=0) == wide
    assert paired_ratio(scores, reference, patients, seed=1) != wide


def test_chunks_do_not_change_the_interval(monkeypatch):
    scores, reference, patients = two_methods(np.random.default_rng(6))
    whole = paired_ratio(scores, reference, patients, resamples=50)
    monkeypatch.setattr(patient_resampling, "CHUNK_VALUES", 700)  # seven resamples at a time
    assert paired_ratio(scores, reference, patients, resamples=50) == whole


def test_what_has_no_ratio_is_refused():
    ones = np.ones(3)
    with pytest.raises(ValueError, match=r"not positive.*mean_by_patient\(scores - reference_scores"):
        paired_ratio(ones, np.array([-1.0, 0.5, 0.2]))
    with pytest.raises(ValueError, match="at least two patients"):
        paired_ratio(ones, ones, np.zeros(3))
    with pytest.raises(ValueError, match="too few patients carry them"):
        paired_ratio(ones, np.array([0.0, 0.0, 1.0]))
    with pytest.raises(ValueError, match="2,000 is usual"):
        paired_ratio(ones, ones, resamples=0)


def test_text():
    assert str(Ratio(1.0612, 1.01, 1.1234, 0.95)) == "1.061 (95% interval 1.010 to 1.123)"
