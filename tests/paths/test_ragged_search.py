import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from counterpath.paths import ragged_search
from counterpath.paths.ragged_search import last_present, rows_before, rows_before_each, running_sum

LENGTHS = st.lists(st.integers(0, 9), min_size=1, max_size=5)


@given(lengths=LENGTHS, data=st.data(), side=st.sampled_from(["left", "right"]))
def test_rows_before_counts_as_searchsorted_does_for_each_patient(lengths, data, side):
    times = [np.sort(data.draw(hnp.arrays(np.float64, n, elements=st.integers(0, 6).map(float)))) for n in lengths]
    queries = data.draw(hnp.arrays(np.float64, (len(lengths), 4), elements=st.integers(-1, 7).map(float)))
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    found = rows_before(offsets, np.concatenate(times), queries, side=side)
    expected = [np.searchsorted(t, q, side=side) for t, q in zip(times, queries, strict=True)]
    np.testing.assert_array_equal(found, np.array(expected))


@given(lengths=LENGTHS, data=st.data(), side=st.sampled_from(["left", "right"]))
def test_rows_before_each_counts_among_the_rows_of_the_querys_own_patient(lengths, data, side):
    """Patients in any order, some of them several times and some never."""
    times = [np.sort(data.draw(hnp.arrays(np.float64, n, elements=st.integers(0, 6).map(float)))) for n in lengths]
    patient = np.array(data.draw(st.lists(st.integers(0, len(lengths) - 1), max_size=9)), dtype=np.int64)
    queries = data.draw(hnp.arrays(np.float64, len(patient), elements=st.integers(-1, 7).map(float)))
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    found = rows_before_each(offsets, np.concatenate(times), patient, queries, side=side)
    expected = [np.searchsorted(times[p], query, side=side) for p, query in zip(patient, queries, strict=True)]
    np.testing.assert_array_equal(found, np.array(expected, dtype=np.int64))


@given(lengths=LENGTHS, data=st.data())
def test_running_sum_is_a_cumsum_per_patient_to_the_bit(lengths, data):
    values = [data.draw(hnp.arrays(np.float64, (n, 2), elements=st.floats(-1e6, 1e6))) for n in lengths]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    expected = np.concatenate([np.cumsum(v, axis=0) for v in values])
    np.testing.assert_array_equal(running_sum(offsets, np.concatenate(values)), expected)


@given(lengths=LENGTHS, data=st.data(), cells=st.integers(1, 30))
def test_blocks_do_not_change_a_running_sum(lengths, data, cells):
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    values = data.draw(hnp.arrays(np.float64, (int(offsets[-1]), 2), elements=st.floats(-1e6, 1e6)))
    whole = running_sum(offsets, values)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ragged_search, "PADDED_CELLS", cells)
        np.testing.assert_array_equal(running_sum(offsets, values), whole)


def test_one_patient_with_very_many_rows_does_not_cost_memory_for_everybody():
    """Padded to the longest, 4,000 patients with 20,000 rows would be 640 MB."""
    lengths = np.full(4_000, 5)
    lengths[1_234] = 20_000
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    values = np.random.default_rng(0).normal(size=(int(offsets[-1]), 1))
    tracemalloc.start()
    sums = running_sum(offsets, values)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30e6
    for patient in (0, 1_234, 3_999):
        own = slice(offsets[patient], offsets[patient + 1])
        np.testing.assert_array_equal(sums[own], np.cumsum(values[own], axis=0))


def test_last_present_stays_within_the_patient():
    offsets = np.array([0, 3, 5])
    values = np.array([[1.0], [np.nan], [2.0], [np.nan], [3.0]])
    np.testing.assert_array_equal(last_present(offsets, values)[:, 0], [0, 0, 2, -1, 4])
