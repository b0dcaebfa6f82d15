"""How many steps may be left out, because they are not finite, before a run is stopped."""

import numpy as np
import pytest
from small_models import small_tecde

from counterpath.training import TrainingError
from counterpath.training.divergence import require_finite, require_kept

SETTINGS = small_tecde().training


def history(bad_epochs, epochs, members=2):
    """Of a run whose second member had a step that was not finite in these epochs, all of one step."""
    return [
        {"member": member, "epoch": epoch, "bad_steps": float(member == 1 and epoch in bad_epochs)}
        for epoch in range(1, epochs + 1)
        for member in range(members)
    ]


@pytest.mark.parametrize(("bad", "epochs"), [({8}, 8), ({1, 2, 5, 8}, 8), ({1, 2, 3, 4, 30}, 30)])
def test_where_an_epoch_is_one_step_few_that_are_not_finite_do_not_end_the_run(bad, epochs):
    require_finite(history(bad, epochs), SETTINGS, 1)
    with pytest.raises(TrainingError, match=f"By epoch {epochs}, 5 of the last {min(epochs, 20)} steps"):
        require_finite(history({*range(epochs - 4, epochs + 1)}, epochs), SETTINGS, 1)


def test_a_network_without_any_state_worth_keeping_is_not_returned_as_if_it_had_learned():
    require_kept(np.array([-3.0, 1.0]))
    with pytest.raises(TrainingError, match=r"^No state described the validation patients"):
        require_kept(np.array([-np.inf]))
    with pytest.raises(TrainingError, match="Of network 2 of 2 no state described"):
        require_kept(np.array([1.0, -np.inf]))
