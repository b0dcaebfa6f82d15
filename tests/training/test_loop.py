from copy import copy
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_models import fit_small, leaves_of, small_bncde, small_study, small_tecde

import counterpath as cp
from counterpath.estimators.joint_fit import fit_members
from counterpath.training import Clock, TrainingError, tabulate, train
from counterpath.training.problem import Problem
from counterpath.training.scored_cuts import spread_cuts
from counterpath.training.scores import noise_and_spread, validation_score

pytestmark = pytest.mark.slow  # models are compiled and trained


@pytest.fixture(scope="module")
def fitted():
    return fit_small(small_bncde())


@pytest.fixture(scope="module")
def fixed():
    """With fixed weights, which compiles in half the time."""
    return fit_small(small_tecde())


@pytest.fixture(scope="module")
def stopped():
    """With steps so long that scores go up and down, until three in a row are no better."""
    return fit_small(small_tecde(epochs=500, patience=3, schedule="constant", learning_rate=0.1))


def examples_of(model):
    """Those that it was trained on, and those that it was scored on; with a cell per day nothing in them is random."""
    return [tabulate(c, model.tabulation_, cuts="many", rng=np.random.default_rng(0)) for c in small_study()]


def train_again(model, *, network=None, change=lambda examples: examples):
    """The loop alone, from the model's start or from another network, on changed examples."""
    examples, held = examples_of(model)
    network = network or model.new_network(model.tabulation_, model.seed)
    clock = Clock.of(model.tabulation_)
    return train([network], change(examples), held, clock, model.training, seeds=[model.seed])


def on_validation(function, model, network):
    """A function of the validation patients and a network, computed apart from the loop."""
    held = spread_cuts(examples_of(model)[1], model.training.validation_cuts)
    parameters, rest = eqx.partition(jax.tree.map(lambda leaf: leaf[None], network), eqx.is_inexact_array)
    clock = Clock.of(model.tabulation_)
    problem = Problem(held.inputs, held.targets, clock, held.outcomes, rest, model.training)
    return function(problem, jax.random.key(0), parameters)[0]


def chosen_noise(problem, key, parameters):
    """Scale and growth, side by side."""
    (scale, growth), _ = noise_and_spread(problem, key, parameters)
    return jnp.concatenate([scale[..., None], growth], axis=-1)


def noise_of(network):
    return network.outcome_head.noise_scale, network.outcome_head.noise_growth


def score(model, network):
    """The validation score of a network."""
    return float(on_validation(validation_score, model, network))


def with_noise_of_training(network):
    """The network before the size of its noise was chosen."""
    plain = (jnp.ones_like(network.outcome_head.noise_scale), jnp.zeros_like(network.outcome_head.noise_growth))
    return eqx.tree_at(noise_of, network, plain)


def same(ours, theirs):
    return all(np.array_equal(a, b) for a, b in zip(leaves_of(ours), leaves_of(theirs), strict=True))


# Improvement, stopping, and what is kept


@pytest.mark.parametrize("which", ["fitted", "fixed"])
def test_training_improves_the_validation_score(which, request):
    model = request.getfixturevalue(which)
    untrained = score(model, model.new_network(model.tabulation_, model.seed))
    assert model.history_["validation"].max() > untrained + 0.1


def test_history_has_a_row_per_epoch(fitted):
    history = fitted.history_
    assert history["epoch"].to_list() == list(range(1, 31))
    assert history.columns == [
        "posterior",
        "epoch",
        "log_likelihood",
        "kl",
        "bad_steps",
        "validation",
        "kept",
        "seconds",
    ]
    assert history["seconds"].is_sorted()
    assert history.select("log_likelihood", "kl").null_count().row(0) == (0, 0)
    # About ten scores, and some early ones.
    assert history.drop_nulls("validation")["epoch"].to_list() == sorted({1, 2, 4, 14, *range(3, 31, 3)})
    assert history["bad_steps"].max() == 0.0


def test_training_stops_when_patience_is_exhausted(stopped):
    scores = stopped.history_["validation"].to_numpy()
    assert len(scores) < 500
    assert len(scores) - 1 - scores.argmax() == 3


@pytest.mark.parametrize("which", ["fitted", "stopped"])
def test_the_state_with_the_best_score_is_kept(which, request):
    """For the one that was stopped, it is not the last. Scores of epochs are with the noise of training."""
    model = request.getfixturevalue(which)
    assert score(model, with_noise_of_training(model.networks_[0])) == pytest.approx(
        model.history_["validation"].max(),
        rel=1e-5,  # two compiled programs, single precision
    )


@pytest.fixture(scope="module")
def ramped():
    return fit_small(small_bncde(kl_ramp=0.5))


def test_while_the_kl_comes_in_it_holds_back_less(ramped, fitted):
    """The first step is the same but for the KL, which counts nothing there; then the means move on more freely."""
    early = [model.history_["kl"][4] for model in (ramped, fitted)]
    assert early[0] > early[1]


def test_no_state_is_kept_before_the_kl_counts_in_full(ramped):
    late = ramped.history_.filter(ramped.history_["epoch"] >= 15)["validation"].max()
    assert score(ramped, with_noise_of_training(ramped.networks_[0])) == pytest.approx(
        late,
        rel=1e-5,  # two compiled programs, single precision
    )


# The size of the noise, and what is not learned


@pytest.mark.parametrize("which", ["fitted", "fixed"])
def test_the_noise_of_the_best_state_is_the_one_that_suits_validation_patients(which, request):
    model = request.getfixturevalue(which)
    plain = with_noise_of_training(model.networks_[0])
    scale, growth = noise_of(model.networks_[0])
    chosen = on_validation(chosen_noise, model, plain)
    np.testing.assert_array_equal(scale, chosen[:, 0])
    np.testing.assert_allclose(growth, chosen[:, 1:], rtol=1e-6)  # two compiled programs
    assert abs(float(scale[0]) - 1) > 0.01  # it was chosen, and is not where it started


def test_predictions_have_the_chosen_noise():
    """Each component's std is multiplied by it, and their mean stays where noise is alike on both sides."""
    fixed = fit_small(small_tecde(skewed=False))
    history = small_study()[1].until(30.0, ended="drop")
    inputs, _ = fixed._inputs(history, cp.Plan.none().resolve(history), np.tile([1.0, 4.0], (len(history), 1)))
    factor = np.asarray(fixed.networks_[0].outcome_head.noise_factor(inputs.times))[:, 0, :, 0]
    ask = lambda model: model.components(history, cp.Plan.none(), np.array([1.0, 4.0]), 8, 0)  # noqa: E731
    mean, std = ask(fixed)
    plain = copy(fixed)
    plain.networks_ = (with_noise_of_training(fixed.networks_[0]),)
    plain_mean, plain_std = ask(plain)
    # What is not known of where they start is as large as the noise, on both sides of that mean.
    np.testing.assert_allclose(mean.mean(axis=0), plain_mean.mean(axis=0), rtol=1e-5, atol=1e-6)
    assert np.abs(factor - 1).min() > 0.01
    np.testing.assert_allclose(std, factor * plain_std, rtol=1e-5)


@pytest.mark.parametrize("options", [{"fits_noise": False}, {"outcome_noise": False}], ids=str)
def test_noise_that_is_not_fitted_stays_as_it_was_learned(options):
    model = fit_small(small_tecde(epochs=2, **options))
    scale, growth = noise_of(model.networks_[0])
    np.testing.assert_array_equal(scale, 1.0)
    np.testing.assert_array_equal(growth, 0.0)


def test_members_that_are_trained_at_once_get_noise_of_their_own():
    together = [small_tecde(seed=seed) for seed in (0, 1)]
    learn, held = small_study()
    fit_members(together, [learn], [held], progress=False)
    networks = [member.networks_[0] for member in together]
    noises = [np.concatenate([scale[:, None], growth], axis=-1) for scale, growth in map(noise_of, networks)]
    for network, member, noise in zip(networks, together, noises, strict=True):
        found = on_validation(chosen_noise, member, with_noise_of_training(network))
        np.testing.assert_allclose(found, noise, rtol=1e-5)
    assert np.abs(noises[0] - noises[1]).max() > 0


@pytest.mark.parametrize("which", ["fitted", "fixed", "stopped"])
def test_what_the_state_carries_is_not_changed_by_training(which, request):
    model = request.getfixturevalue(which)
    fields = model.networks_[0].encoder_field, model.networks_[0].decoder_field
    for field, rows in zip(fields, model.tabulation_.carried_units(), strict=True):
        np.testing.assert_array_equal(field.carry, rows)


# Divergence


def test_an_absurd_learning_rate_is_an_error_that_says_what_to_do():
    with pytest.raises(TrainingError, match=r"training has diverged\. Lower learning_rate"):
        fit_small(small_tecde(learning_rate=1e6, readout_learning_rate=1e6, schedule="constant", activation="relu"))


def test_a_network_that_is_not_finite_is_an_error(fixed):
    broken = jax.tree.map(lambda leaf: leaf * jnp.nan if eqx.is_inexact_array(leaf) else leaf, fixed.networks_[0])
    with pytest.raises(TrainingError, match="By epoch 1, 6 of the last 6 steps"):
        train_again(fixed, network=broken)


def test_steps_that_are_not_finite_are_left_out_and_counted(fixed):
    """One patient's change overflows: of six batches, the one that holds this patient is left out."""

    def overflow(examples):
        changes = examples.targets.changes.at[5].set(1e30)
        return replace(examples, targets=eqx.tree_at(lambda t: t.changes, examples.targets, changes))

    trained = train_again(fixed, change=overflow)
    np.testing.assert_allclose(trained.history["bad_steps"], 1 / 6, rtol=1e-6)
    assert trained.history["log_likelihood"].is_finite().all()
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(eqx.filter(trained.networks[0], eqx.is_array)))
    assert (
        trained.scores[0] > score(fixed, fixed.new_network(fixed.tabulation_, fixed.seed)) + 0.1
    )  # the others are learnt from


def test_validation_without_a_predictable_outcome_is_an_error():
    learn, held = small_study()
    with pytest.raises(TrainingError, match="No outcome of the validation patients can be predicted"):
        small_tecde().fit(learn, held.until(held.records.times[held.records.offsets[:-1]]), progress=False)


# Seeds


def test_the_same_seed_gives_the_same_bits_and_another_seed_others(fitted):
    assert same(fit_small(small_bncde()), fitted)
    assert not same(fit_small(small_bncde(seed=1)), fitted)


def assert_close(ours, theirs):
    """To rounding, which 24 steps of Adam make larger, and hundreds would make as large as the weights themselves."""
    for a, b in zip(leaves_of(ours), leaves_of(theirs), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)
    ours_scores, theirs_scores = (model.history_["validation"].to_numpy() for model in (ours, theirs))
    np.testing.assert_allclose(ours_scores, theirs_scores, rtol=1e-2)


def test_seeds_that_are_trained_at_once_are_what_each_is_alone():
    together = [small_tecde(seed=seed, epochs=4) for seed in (0, 1)]
    learn, held = small_study()
    fit_members(together, [learn], [held], progress=False)
    for seed, member in enumerate(together):
        assert_close(member, fit_small(small_tecde(seed=seed, epochs=4)))


def test_patience_is_each_members_own():
    """One stops, another goes on, and the first keeps what it had, even where it would have become better later."""
    together = [
        small_tecde(seed=seed, epochs=60, patience=3, schedule="constant", learning_rate=0.1) for seed in range(4)
    ]
    learn, held = small_study()
    fit_members(together, [learn], [held], progress=False)
    ends = []
    for member in together:
        scores = member.history_["validation"].to_list()
        ends.append(next(n for n in range(4, len(scores) + 1) if max(scores[: n - 3]) >= max(scores[n - 3 : n])))
        kept = score(member, with_noise_of_training(member.networks_[0]))
        assert kept == pytest.approx(max(scores[: ends[-1]]), rel=1e-5)  # two compiled programs, single precision
    assert len(set(ends)) > 1
    assert {member.history_.height for member in together} == {max(ends)}


@pytest.mark.long
def test_members_with_patients_and_grids_of_their_own_are_what_each_is_alone():
    """The second has records up to day 20 only, hence fewer cells, cuts and outcomes."""
    learn, held = small_study()
    short = lambda cohort: cohort.until(20.0, ended="drop")  # noqa: E731
    alone = [small_bncde(epochs=4).fit(*each, progress=False) for each in ((learn, held), (short(learn), short(held)))]
    cells = [model.tabulation_.grid.cells for model in alone]
    assert cells[0] > cells[1]
    together = [small_bncde(epochs=4) for _ in range(2)]
    fit_members(together, [learn, short(learn)], [held, short(held)], progress=False)
    for ours, theirs in zip(together, alone, strict=True):
        assert_close(ours, theirs)


# Compilation


@pytest.fixture
def compilations(caplog):
    """How many programs a fit of a model compiles."""

    def count(model, *cohorts):
        caplog.clear()
        with jax.log_compiles():
            model.fit(*(cohorts or small_study()), progress=False)
        return sum("Compiling" in text for text in caplog.messages)

    return count


def test_a_second_fit_of_the_same_shapes_compiles_nothing(fixed, compilations):
    assert compilations(small_tecde(seed=2)) == 0
    assert compilations(small_tecde(hidden=2, epochs=1)) > 0  # the count does count


def test_other_patients_with_arrays_of_the_same_shapes_compile_nothing(fixed, compilations):
    """Of whom one outcome less is known."""
    learn, held = small_study()
    values = learn.records.values.copy()
    values[10] = np.nan
    assert compilations(small_tecde(), replace(learn, records=replace(learn.records, values=values)), held) == 0


def test_fit_says_whom_it_held_out_and_how_records_share_cells(capsys):
    small_tecde(epochs=1).fit(small_study()[0])
    said = " ".join(capsys.readouterr().err.split())
    assert "2 of 24 patients are held out for validation" in said
    assert "0% of the records share one with another of their patient" in said
