import hashlib
import json
import struct
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from small_models import fit_small, leaves_of, small_bncde, small_study, small_tecde

import counterpath as cp
from counterpath.estimators.model_file import FORMAT

pytestmark = pytest.mark.slow  # models are compiled and trained

TODAY = small_study()[1].until(50.0)
PLAN = cp.Plan.repeat("chemotherapy", every=1.0, times=3)
MODELS = {
    "BNCDE": lambda: fit_small(small_bncde(posteriors=2, epochs=2, likelihood="student_t")),
    "TECDE without noise": lambda: fit_small(small_tecde(outcome_noise=False, dropout=0.1, epochs=2)),
    "ensemble": lambda: cp.DeepEnsemble(small_tecde(epochs=2), members=2).fit(*small_study(), progress=False),
}


def answers(model) -> np.ndarray:
    return model.predict(TODAY, PLAN, horizons=[1.0, 2.5, 5.0], draws=12).sample(40)


@pytest.fixture(scope="module", params=MODELS)
def saved(request, tmp_path_factory):
    model = MODELS[request.param]()
    path = tmp_path_factory.mktemp("models") / "deep" / "model.safetensors"
    model.save(path)
    return model, path


@pytest.fixture(scope="module")
def small_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model.safetensors"
    fit_small(small_tecde(epochs=2)).save(path)
    return path


def test_a_model_that_was_loaded_answers_to_the_bit_as_before(saved):
    model, path = saved
    loaded = cp.load(path)
    assert type(loaded) is type(model)
    np.testing.assert_array_equal(answers(loaded), answers(model))
    assert loaded.max_horizon == model.max_horizon


def test_what_a_model_was_made_with_stays_with_it(small_file):
    model, loaded = fit_small(small_tecde(epochs=2)), cp.load(small_file)
    assert loaded.architecture == model.architecture
    assert loaded.training == model.training
    assert loaded.history_.drop("seconds").equals(model.history_.drop("seconds"))
    assert loaded.schema.outcomes == model.schema.outcomes
    again = small_file.with_name("again.safetensors")
    loaded.save(again)
    assert [a.tobytes() for a in leaves_of(cp.load(again))] == [a.tobytes() for a in leaves_of(model)]


def test_a_file_is_written_whole_or_not_at_all(small_file, tmp_path, monkeypatch):
    model, path = cp.load(small_file), tmp_path / "model.safetensors"
    path.write_bytes(b"older")

    def full_disk(*_, **__):
        raise OSError("No space left on device")

    monkeypatch.setattr("counterpath.estimators.model_file.os.fsync", full_disk)
    with pytest.raises(OSError, match="No space"):
        model.save(path)
    assert path.read_bytes() == b"older"
    assert [p.name for p in tmp_path.iterdir()] == ["model.safetensors"]


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda: cp.LastValue(5.0).fit(small_study()[0]), "LastValue keeps values"),
        (lambda: small_tecde(), "has not been fitted"),
    ],
)
def test_models_that_cannot_be_saved_say_why(model, message, tmp_path):
    with pytest.raises(cp.ModelFileError, match=message):
        model().save(tmp_path / "model.safetensors")


# No value of any patient


def private_cohort() -> cp.Cohort:
    """Values, doses and times that occur nowhere else, in patients with names."""
    rng = np.random.default_rng(0)
    names = [f"Mrs. Unmistakable {i}" for i in range(24)]
    visits, given = [], []
    for name in names:
        times = np.sort(rng.uniform(0.0, 60.0, 12))
        visits += [{"patient": name, "time": t, "y": float(rng.lognormal()), "x": rng.normal()} for t in times]
        given += [
            {"patient": name, "treatment": "drug", "time": t, "dose": rng.uniform(1, 2)}
            for t in times[::5] + rng.uniform(0.1, 0.2)
        ]
    static = pl.DataFrame({"patient": names, "age": rng.uniform(20, 90, len(names))})
    return cp.Cohort.from_tables(
        pl.DataFrame(visits), pl.DataFrame(given), static, outcome="y", covariates=["x"], time_unit="day"
    )


@pytest.mark.parametrize("transform", ["log", "robust"])
def test_no_value_of_any_patient_is_in_the_file(transform, tmp_path):
    cohort = private_cohort()
    path = tmp_path / "model.safetensors"
    small_tecde(transform=transform, cells=16, epochs=1).fit(cohort[:20], cohort[20:], progress=False).save(path)
    content = path.read_bytes()
    since_first = [times - times[0] for times in np.split(cohort.records.times, cohort.records.offsets[1:-1])]
    values = np.concatenate(
        [
            cohort.records.values.ravel(),
            cohort.records.times,
            *(since[1:] for since in since_first),
            cohort.events.amount,
            cohort.events.start,
            cohort.static_values.ravel(),
        ]
    )
    values = values[~np.isnan(values) & (values != 0.0)]  # time zero is the first record of each
    for value in values.tolist():
        assert struct.pack("<d", value) not in content
        assert f"{value:.9g}".encode() not in content
    assert b"Unmistakable" not in content


# Files that are not models


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no model at .*nowhere"):
        cp.load(tmp_path / "nowhere.safetensors")


def test_a_truncated_file_is_refused_at_every_kilobyte(small_file, tmp_path):
    whole = small_file.read_bytes()
    for length in [0, 1, 7, 8, 9, *range(1024, len(whole), 1024), len(whole) - 1]:
        (tmp_path / "model.safetensors").write_bytes(whole[:length])
        with pytest.raises(cp.ModelFileError, match="model"):
            cp.load(tmp_path / "model.safetensors")


def rewritten(small_file, path, change) -> Path:
    """The same file with another header, and a digest that fits."""
    with safe_open(small_file, framework="numpy") as file:
        header = json.loads(file.metadata()["counterpath"])
    arrays = load_file(small_file)
    change(header, arrays)
    text = json.dumps(header)
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        digest.update(repr((name, arrays[name].dtype.str, arrays[name].shape)).encode())
        digest.update(arrays[name].tobytes())
    save_file(arrays, path, metadata={"counterpath": text, "sha256": digest.hexdigest()})
    return path


def newer(header, arrays):
    header["format"] = FORMAT + 1
    header["something"] = "new"


def other_class(header, arrays):
    header["members"][0]["model"] = "os.system"


def unknown_key(header, arrays):
    header["members"][0]["run"] = "rm"


def too_large(header, arrays):
    header["members"][0]["architecture"]["hidden"] = 10**9


def wrong_kind(header, arrays):
    header["members"][0]["architecture"]["hidden"] = "many"


def not_finite(header, arrays):
    name = next(name for name in arrays if "networks/0/" in name)
    arrays[name] = np.full_like(arrays[name], np.nan)


def array_gone(header, arrays):
    del arrays[next(name for name in arrays if "networks/0/" in name)]


def no_grid(header, arrays):
    del arrays["0/grid"]


def grid_backwards(header, arrays):
    arrays["0/grid"] = arrays["0/grid"][::-1].copy()


def no_members(header, arrays):
    header["members"] = []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (newer, "newer counterpath"),
        (other_class, "does not describe a model"),
        (unknown_key, "does not describe a model"),
        (too_large, "does not hold"),
        (wrong_kind, "hidden"),
        (not_finite, "not finite"),
        (array_gone, "lacks"),
        (no_grid, "does not hold"),
        (grid_backwards, "does not hold"),
        (no_members, "does not describe a model"),
    ],
)
def test_a_header_that_does_not_fit_is_refused_in_plain_words(small_file, tmp_path, change, message):
    path = rewritten(small_file, tmp_path / "model.safetensors", change)
    with pytest.raises(cp.ModelFileError, match=message):
        cp.load(path)


def test_an_unchanged_header_is_read(small_file, tmp_path):
    """So that the refusals above are of what was changed."""
    path = rewritten(small_file, tmp_path / "model.safetensors", lambda header, arrays: None)
    np.testing.assert_array_equal(answers(cp.load(path)), answers(cp.load(small_file)))


def test_a_header_of_another_model_is_refused(small_file, tmp_path):
    other = tmp_path / "other.safetensors"
    fit_small(small_tecde(epochs=2, seed=1)).save(other)
    with safe_open(other, framework="numpy") as file:
        metadata = file.metadata()
    save_file(load_file(small_file), tmp_path / "model.safetensors", metadata=metadata)
    with pytest.raises(cp.ModelFileError, match="changed or damaged"):
        cp.load(tmp_path / "model.safetensors")


def test_a_foreign_file_is_told_from_a_damaged_one(tmp_path):
    save_file({"weights": np.zeros(3)}, tmp_path / "foreign.safetensors")
    with pytest.raises(cp.ModelFileError, match="not a model of counterpath"):
        cp.load(tmp_path / "foreign.safetensors")


# Every example writes its file anew, so that they may share a folder; reading one takes a millisecond.
MANY = settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])


@MANY
@given(data=st.data())
def test_changed_bytes_are_never_read_as_a_model(small_file, tmp_path, data):
    """Except where they mean the same, such as a blank more between two words of the header."""
    content = bytearray(small_file.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] = data.draw(st.integers(0, 255))
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    try:
        loaded = cp.load(path)
    except cp.ModelFileError:
        return
    assert [a.tobytes() for a in leaves_of(loaded)] == [a.tobytes() for a in leaves_of(cp.load(small_file))]


@MANY
@given(content=st.binary(max_size=4096))
def test_random_bytes_are_never_read_as_a_model(tmp_path, content):
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(cp.ModelFileError, match="model"):
        cp.load(tmp_path / "model.safetensors")
