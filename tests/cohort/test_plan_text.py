import pytest

import counterpath as cp


@pytest.mark.parametrize(
    ("text", "plan"),
    [
        ("none", cp.Plan.none()),
        ("continued", cp.Plan.continued()),
        ("chemotherapy@0,2,4", cp.Plan.repeat("chemotherapy", every=2.0, times=3)),
        ("chemotherapy=5@1.5", cp.Plan.dose("chemotherapy", at=1.5, dose=5.0)),
        ("oxygen=2@0-6", cp.Plan.infusion("oxygen", 0.0, 6.0, 2.0)),
        ("oxygen@1-", cp.Plan.infusion("oxygen", 1.0)),
        ("continued + fluid=250@0", cp.Plan.continued() + cp.Plan.dose("fluid", dose=250.0)),
        ("vitamin B+C @ home=2@0", cp.Plan.dose("vitamin B+C @ home", dose=2.0)),
        ("ratio=a=1@0", cp.Plan.dose("ratio=a", dose=1.0)),
    ],
)
def test_a_line_is_the_plan(text, plan):
    assert cp.Plan.from_text(text) == plan


def test_times_have_the_unit_that_is_said():
    assert cp.Plan.from_text("fluid@6", time_unit="hour") == cp.Plan.dose("fluid", at=6.0, time_unit="hour")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not a part of a plan"),
        ("chemotherapy", "'chemotherapy' is not a part of a plan"),
        ("chemotherapy@", "is not a part of a plan"),
        ("@0", "is not a part of a plan"),
        ("=5@0", "is not a part of a plan"),
        ("chemotherapy@now", "'now' in 'chemotherapy@now' is not a number"),
        ("chemotherapy=much@0", "'much' in 'chemotherapy=much@0' is not a number"),
        ("chemotherapy@-1", "'' in 'chemotherapy@-1' is not a number"),
        ("oxygen@6-2", "not after its start"),
        ("chemotherapy=0@0", "dose=0"),
        ("chemotherapy@nan", "at=nan"),
    ],
)
def test_what_cannot_be_read_is_named(text, said):
    with pytest.raises(cp.PlanError, match=said):
        cp.Plan.from_text(text)
