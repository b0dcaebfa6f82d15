"""Pages of the benches say what the committed figures beside them say."""

import pytest

from bench import (
    cohort_scale,
    device_epoch,
    effects,
    engine_table,
    explorer_load,
    meds_scale,
    model_uncertainty,
    oracle_table,
    prediction_speed,
    real_records,
    simulator_scale,
    speed_page,
)
from bench.provenance import RESULTS, last_result

PAGES = {
    "cohort-scale": cohort_scale.page,
    "effects": effects.page_of,
    "engine": engine_table.page_of,
    "explorer-load": explorer_load.page_of,
    "meds-scale": meds_scale.page,
    "model-uncertainty": lambda content: model_uncertainty.page_of(content["cells"]),
    "oracle": oracle_table.page,
    "prediction-speed": prediction_speed.page_of,
    "real-records": real_records.page_of,
    "simulator-scale": simulator_scale.page,
    "speed": speed_page.page,
    "speed-device": device_epoch.page_of,
}


@pytest.mark.parametrize("name", PAGES)
def test_a_committed_page_is_rendered_from_its_figures(name):
    assert PAGES[name](last_result(name)) == (RESULTS / f"{name}.md").read_text(encoding="utf-8")


def test_every_result_has_its_page_under_test():
    assert {path.stem for path in RESULTS.glob("*.json")} == set(PAGES)
