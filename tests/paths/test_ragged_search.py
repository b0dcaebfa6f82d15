import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from counterpath.paths.ragged_search import last_present, rows_before, running_sum

LENGTHS = st.lists(st.integers(0, 9), min_size=1, max_size=5)


@given(lengths=LENGTHS, data=st.data(), side=st.sampled_from(["left", "right"]))
def test_rows_before_counts_as_searchsorted_does_for_each_patient(lengths, data, side):
    times = [np.sort(data.draw(hnp.arrays(np.float64, n, elements=st.integers(0, 6).map(float)))) for n in lengths]
    queries = data.draw(hnp.arrays(np.float64, (len(lengths), 4), elements=st.integers(-1, 7).map(float)))
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    found = rows_before(offsets, np.concatenate(times), queries, side=side)
    expected = [np.searchsorted(t, q, side=side) for t, q in zip(times, queries, strict=True)]
    np.testing.assert_array_equal(found, np.array(expected))


@given(lengths=LENGTHS, data=st.data())
def test_running_sum_is_a_cumsum_per_patient_to_the_bit(lengths, data):
    values = [data.draw(hnp.arrays(np.float64, (n, 2), elements=st.floats(-1e6, 1e6))) for n in lengths]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    expected = np.concatenate([np.cumsum(v, axis=0) for v in values])
    np.testing.assert_array_equal(running_sum(offsets, np.concatenate(values)), expected)


def test_last_present_stays_within_the_patient():
    offsets = np.array([0, 3, 5])
    values = np.array([[1.0], [np.nan], [2.0], [np.nan], [3.0]])
    np.testing.assert_array_equal(last_present(offsets, values)[:, 0], [0, 0, 2, -1, 4])
