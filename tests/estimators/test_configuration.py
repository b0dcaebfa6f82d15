import tomllib

import pytest

from counterpath.cohort import CohortError
from counterpath.estimators import BNCDE, TECDE, Configuration, ConfigurationError, DeepEnsemble
from counterpath.estimators.configuration import PRESETS


def built(text, tmp_path):
    path = tmp_path / "fit.toml"
    path.write_text(text, encoding="utf-8")
    return Configuration.read(path).build()


@pytest.mark.parametrize("preset", PRESETS)
def test_a_written_configuration_makes_the_same_model(preset, tmp_path):
    made = PRESETS[preset](3.0)
    again = built(Configuration.of(preset, 3.0).to_toml(), tmp_path)
    assert type(again) is type(made)
    assert (again.max_horizon, again.architecture, again.training) == (3.0, made.architecture, made.training)
    assert again.parameters == made.parameters


@pytest.mark.parametrize("preset", PRESETS)
def test_every_setting_is_explained(preset):
    text = Configuration.of(preset, 3.0).to_toml()
    settings = [line for line in text.split("[settings]")[1].splitlines() if line]
    assert all(line.count("#") >= 1 and line.rstrip().endswith(".") for line in settings)
    assert len(settings) == len(PRESETS[preset](3.0).parameters)
    assert tomllib.loads(text)["max_horizon"] == 3.0


def test_what_is_left_out_has_its_default(tmp_path):
    assert built('model = "TECDE"\nmax_horizon = 2\n', tmp_path).parameters == TECDE(2.0).parameters


def test_an_ensemble_is_of_the_model(tmp_path):
    made = built('model = "BNCDE"\nmax_horizon = 2.0\nensemble = 3\n[settings]\nposteriors = 1\n', tmp_path)
    assert isinstance(made, DeepEnsemble)
    assert made.members == 3
    assert isinstance(made.model, BNCDE)
    assert made.model.posteriors == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("model = ", r"fit\.toml is not TOML: Invalid value"),
        ('model = "BNCDE"\n', r"fit\.toml, max_horizon: Field required"),
        ('model = "BNCD"\nmax_horizon = 5\n', r"fit\.toml, line 1, model: Input should be 'BNCDE' or 'TECDE'"),
        ('model = "BNCDE"\n\nmax_horizon = "5"\n', r"fit\.toml, line 3, max_horizon: Input should be a valid number"),
        ('model = "BNCDE"\nmax_horizon = -1\n', r"line 2, max_horizon: Input should be greater than 0"),
        ('model = "BNCDE"\nmax_horizn = 5\nmax_horizon = 5\n', r"line 2, max_horizn: .* Did you mean 'max_horizon'\?"),
        (
            'model = "BNCDE"\nmax_horizon = 5\n[settings]\n\nposteriers = 2\n',
            r"line 5, settings\.posteriers: There is no such key\. Did you mean 'posteriors'\?",
        ),
        (
            'model = "BNCDE"\nmax_horizon = 5\n[settings]\nsteps = "many"\n',
            r"line 4, settings\.steps: Input should be a valid integer",
        ),
        (
            'model = "TECDE"\nmax_horizon = 5\n[settings]\nactivation = "gelu"\n',
            r"line 4, settings\.activation: Input should be 'relu', 'silu' or 'tanh'",
        ),
        ('model = "TECDE"\nmax_horizon = 5\n[settings]\ndraws = true\n', r"line 4, settings\.draws: .* integer"),
        ('model = "TECDE"\nmax_horizon = 5\n[settings]\nsteps = 0\n', r"line 4: steps=0 must be more than zero"),
        ('model = "TECDE"\nmax_horizon = 5\n[settings]\nseed = -1\n', r"line 4: seed=-1 is negative"),
        ('model = "TECDE"\nmax_horizon = 5\n[setings]\nsteps = 1\n', r"line 3, setings: .* Did you mean 'settings'"),
        ('model = "TECDE"\nmax_horizon = 5\n[settings]\nfield_widths = [4, 0]\n', r"field_widths=\(4, 0\) must be"),
        ('model = "TECDE"\nmax_horizon = 5\n[settings]\ndropout = 1.5\n', r"dropout=1\.5 is not a probability"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(text, said, tmp_path):
    with pytest.raises(ConfigurationError, match=said):
        built(text, tmp_path)


def test_all_mistakes_are_named_at_once(tmp_path):
    with pytest.raises(ConfigurationError) as error:
        built('model = "BNCDE"\nmax_horizon = 5\n[settings]\nsteps = "a"\nhidden = 1.5\n', tmp_path)
    assert len(str(error.value).splitlines()) == 2


def test_an_unknown_preset_lists_those_there_are():
    with pytest.raises(ConfigurationError, match=r"'BNCDE\.lage' is no model\. Did you mean 'BNCDE\.large'\?"):
        Configuration.of("BNCDE.lage", 5.0)


def test_a_model_says_what_is_not_usual():
    assert repr(BNCDE(5.0, seed=3, hidden=8)) == "BNCDE(max_horizon=5, seed=3, hidden=8)"


def test_the_paper_s_weights_can_move_with_every_cell():
    assert BNCDE.paper(1.0, cells_per_move=1).architecture.cells_per_move == 1
    with pytest.raises(CohortError, match="cells_per_move=0 must be more than zero"):
        BNCDE.paper(1.0, cells_per_move=0)
