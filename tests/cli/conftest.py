import json

import pytest
from shell import SMALL, run


@pytest.fixture(scope="session")
def study(tmp_path_factory):
    """A folder with a study in two parts, a configuration and a model."""
    folder = tmp_path_factory.mktemp("study")
    assert run("simulate", folder / "all", "--patients", 60, "-q").exit_code == 0
    assert run("split", folder / "all", f"{folder / 'train'}=0.7", f"{folder / 'test'}=0.3").exit_code == 0
    (folder / "fit.toml").write_text(SMALL)
    result = run(
        "fit", folder / "train", "--config", folder / "fit.toml", "--to", folder / "model.safetensors", "--json"
    )
    assert result.exit_code == 0
    assert json.loads(result.stdout)["patients"] == 42
    return folder
