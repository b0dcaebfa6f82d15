"""The experiments: what each claim is, where it is tried, with which models, and what is aimed at."""

from __future__ import annotations

from counterpath.experiments.aims import INVERSE_INTENSITY, OURS_NOMINAL, PLAIN, WITH_BALANCING
from counterpath.experiments.answers import LEVELS
from counterpath.experiments.experiment import Aim, Course, Curve, Experiment
from counterpath.experiments.recipes import BALANCED, SPREADING, USUAL, WEIGHTED
from counterpath.experiments.record_worlds import REAL, SEMI_SYNTHETIC
from counterpath.experiments.tumor_worlds import ARMS, CONTINUOUS, HORIZONS, INFORMATIVE, RANDOMISED
from counterpath.metrics.deferral import SHARES

SHOWN_FROM = 0.8  # of shares of outcomes inside, so that what is near nominal can be told apart
COVERAGE = Curve("coverage", "outcomes inside", "level of the interval", LEVELS, "logit", "diagonal", SHOWN_FROM)
WIDTH = Curve("width", "median width (std of volumes)", "level of the interval", LEVELS, scale="log")
SQUARED = Curve("mean squared error", "mean squared error", "noise of the test patients", "noises", scale="log")
OUTCOME_WIDTH = Curve("width", "median width (std of outcomes)", "level of the interval", LEVELS, scale="log")
MEDIAN_SQUARED, MEDIAN_ABSOLUTE = (
    Curve(error, error, "noise of the test patients", "noises", scale="log")
    for error in ("median squared error", "median absolute error")
)
REST = Curve(
    "error of the rest, by volume", "error of the rest ÷ of all", "share withheld", tuple(SHARES), reference=1.0
)
REST_BY_SCALE, REST_RELATIVE = (
    Curve(f"error of the rest, {by}", label, "share withheld", tuple(SHARES), reference=1.0)
    for by, label in (
        ("by the model's scale", "the same, model's scale"),
        ("by the model's scale, relative", "relative error, model's scale"),
    )
)
CRPS_COURSE, WIDTH_COURSE = (
    Course(figure, figure, scale="log", reference=1.0) for figure in ("CRPS ÷ oracle", "95% width ÷ oracle")
)
HELD_COURSE = Course("95% holds", "95% intervals hold", scale="logit", reference=0.95, lowest=SHOWN_FROM)

EXPERIMENTS = {
    experiment.name: experiment
    for experiment in (
        Experiment(
            "faithfulness",
            "Do intervals hold what they say?",
            "The paper claims that at least as many outcomes lie inside as the level says, at 95 to 99%. Branching "
            "asks about a plan that nobody got after such a history: an extrapolation, for which nothing is promised.",
            (ARMS,),
            USUAL,
            HORIZONS[:3],
            ("faithfulness",),
            ("95% holds", "99% holds", "95% holds, seen", "95% holds, other arm", "95% holds, branching"),
            (COVERAGE,),
            (HELD_COURSE,),
            PLAIN.faithful,
        ),
        Experiment(
            "sharpness",
            "How wide are the intervals?",
            "The paper claims that they are narrower than those of TE-CDE with dropout.",
            (ARMS,),
            USUAL,
            HORIZONS[:3],
            ("sharpness", "closeness"),
            ("95% width", "95% width ÷ oracle", "99% width ÷ oracle", "CRPS ÷ oracle"),
            (WIDTH,),
            (WIDTH_COURSE, CRPS_COURSE),
            (*PLAIN.sharp, *PLAIN.close),
        ),
        Experiment(
            "point-error",
            "How large is the error, and does it stay as noise grows?",
            "The paper claims a smaller error than TE-CDE's, whatever the noise of the test patients.",
            (ARMS,),
            USUAL,
            HORIZONS[:3],
            ("point_error",),
            (
                "mean squared error ÷ oracle",
                "mean squared error at noise 0.01",
                "mean squared error at noise 0.1",
                "median squared error at noise 0.01",
                "median absolute error at noise 0.01",
                "median absolute error at noise 0.1",
                "mean squared error of the mean at noise 0.1",
            ),
            (SQUARED, MEDIAN_SQUARED, MEDIAN_ABSOLUTE),
            aims=PLAIN.exact,
        ),
        Experiment(
            "deferral",
            "Is model uncertainty informative?",
            "The paper claims that the error of the effect between the arms falls while patients of whom the model is "
            "least sure are withheld, and hardly does for TE-CDE.",
            (ARMS,),
            USUAL,
            HORIZONS[:3],
            ("deferral",),
            (
                "area by volume",
                "area by size alone",
                "area by the model's scale",
                "area by the model's scale, relative",
                "Spearman of spread and volume",
                "area by volume, branching",
                "area by the model's scale, relative, branching",
            ),
            (REST, REST_BY_SCALE, REST_RELATIVE),
            aims=PLAIN.informative,
        ),
        Experiment(
            "outcome-uncertainty",
            "Is outcome uncertainty informative?",
            "The paper claims that a larger predicted spread goes with a larger error.",
            (ARMS,),
            USUAL,
            HORIZONS,
            ("outcome_uncertainty",),
            (
                "Spearman, outcome uncertainty alone",
                "Spearman, volume",
                "Spearman, relative",
                "Spearman, volume − oracle",
                "Spearman, relative − oracle",
            ),
            courses=(
                Course("Spearman, volume", "rank correlation, volume"),
                Course("Spearman, relative", "rank correlation, relative"),
            ),
            aims=(
                Aim(
                    "more outcome uncertainty goes with a larger error",
                    "Spearman, outcome uncertainty alone",
                    PLAIN.published,
                    lowest=0.0,
                    whose="paper",
                ),
                Aim(
                    "a larger predicted spread goes with a larger error",
                    "Spearman, volume",
                    PLAIN.published,
                    lowest=0.0,
                    whose="paper",
                ),
                Aim("within 0.05 of the oracle's rank correlation", "Spearman, volume − oracle", lowest=-0.05),
                Aim("the same on a relative scale", "Spearman, relative − oracle", lowest=-0.05),
            ),
        ),
        Experiment(
            "windows",
            "Longer windows",
            "The paper claims the same at four and five days, and that its advantage grows with the window.",
            (ARMS,),
            USUAL,
            HORIZONS[3:],
            ("faithfulness", "sharpness", "closeness", "point_error", "deferral"),
            (
                "95% holds",
                "99% holds",
                "95% width ÷ oracle",
                "CRPS ÷ oracle",
                "mean squared error ÷ oracle",
                "mean squared error at noise 0.1",
                "area by volume",
            ),
            (COVERAGE, WIDTH, SQUARED, REST),
            aims=(*PLAIN.faithful, *PLAIN.sharp, *PLAIN.exact, PLAIN.growing, *PLAIN.informative, *PLAIN.close),
            follows="point-error",
        ),
        Experiment(
            "informative-sampling",
            "Visits that follow the disease",
            "With γ = 2 large tumours are seen more often. The paper weights by inverse intensity and claims to stay "
            "ahead of TESAR-CDE, which is TE-CDE with the same weights.",
            (INFORMATIVE,),
            WEIGHTED,
            HORIZONS[:1],
            ("faithfulness", "sharpness", "closeness", "point_error", "deferral"),
            (
                "95% holds",
                "99% holds",
                "95% width ÷ oracle",
                "CRPS ÷ oracle",
                "mean squared error ÷ oracle",
                "mean squared error at noise 0.1",
                "area by volume",
            ),
            (COVERAGE, WIDTH, SQUARED, REST),
            aims=(
                *INVERSE_INTENSITY.faithful,
                *INVERSE_INTENSITY.sharp,
                *INVERSE_INTENSITY.exact,
                *INVERSE_INTENSITY.informative,
                *INVERSE_INTENSITY.close,
            ),
        ),
        Experiment(
            "diffusion",
            "Does a larger diffusion make intervals more careful?",
            "The paper claims that intervals grow with σ, the diffusion of the weights.",
            (ARMS,),
            SPREADING,
            HORIZONS[:1],
            ("faithfulness", "sharpness"),
            ("95% holds", "99% holds", "95% width", "99% width"),
            (COVERAGE, WIDTH),
            aims=(
                Aim("wider at 0.001 than at 0.0001", "95% width", SPREADING[0], than=SPREADING[1], whose="paper"),
                Aim("wider at 0.01 than at 0.001", "95% width", SPREADING[1], than=SPREADING[2], whose="paper"),
                Aim(
                    "95% hold more at 0.001 than at 0.0001", "95% holds", SPREADING[0], than=SPREADING[1], whose="paper"
                ),
                Aim("95% hold more at 0.01 than at 0.001", "95% holds", SPREADING[1], than=SPREADING[2], whose="paper"),
            ),
        ),
        Experiment(
            "runtime",
            "What depth and draws cost",
            "The paper claims that an epoch grows in proportion to depth and hardly with draws. Its own training took "
            "34 hours on an A100; an epoch of the published code takes 137 s on an H200 and 299 s on two CPU cores.",
            (ARMS,),
            ("BNCDE.paper",),
            HORIZONS[:1],
            ("runtime",),
            (
                "seconds per epoch",
                "seconds per layer",
                "off a straight line by depth",
                "seconds per draw",
                "most draws ÷ one draw",
                "minutes for 500 epochs",
            ),
            (
                Curve("by layers", "seconds per epoch", "layers of 128 units", "depths", lowest=0.0),
                Curve("by draws", "seconds per epoch", "draws", "draws", lowest=0.0),
            ),
            aims=(
                Aim(
                    "an epoch grows with depth in a straight line, within 5% of its growth",
                    "off a straight line by depth",
                    "BNCDE.paper",
                    highest=0.05,
                    whose="paper",
                ),
                Aim(
                    "draws hardly cost: the most at most half as much again as one",
                    "most draws ÷ one draw",
                    "BNCDE.paper",
                    highest=1.5,
                    whose="paper",
                    why="a hundred draws are a hundred times the arithmetic. An H200 hides most of it; CPU cores hide "
                    "little ([a step by draws](../speed.md)).",
                ),
            ),
            at_most=3,
        ),
        Experiment(
            "continuous-time",
            "How close to the limit, on days and in continuous time?",
            "The paper's headline is continuous time: in the last of these worlds doses and visits come at any time.",
            (ARMS, RANDOMISED, CONTINUOUS),
            USUAL,
            HORIZONS,
            ("closeness", "faithfulness", "sharpness"),
            ("CRPS ÷ oracle", "95% holds", "99% holds", "95% width ÷ oracle"),
            (COVERAGE,),
            (CRPS_COURSE, HELD_COURSE, WIDTH_COURSE),
            (*PLAIN.close, *PLAIN.faithful[3:], PLAIN.sharp[1]),
        ),
        Experiment(
            "effects",
            "Are expected effects right?",
            "Where treatment days are random every plan has support. The truth is the oracle's "
            "E[Y(plan) − Y(other) | record].",
            (RANDOMISED,),
            USUAL,
            HORIZONS[1:],
            ("effects",),
            tuple(
                f"{figure}, {name}"
                for name in ("chemotherapy against nothing", "chemotherapy against radiotherapy")
                for figure in ("95% of effects", "error ÷ oracle's std")
            ),
            courses=tuple(
                Course(f"95% of effects, {name}", f"95% hold\n{name}", "linear", 0.95)
                for name in ("chemotherapy against nothing", "chemotherapy against radiotherapy")
            ),
            aims=tuple(
                Aim(
                    f"95% intervals of the effect hold for 90% of patients ({name})",
                    f"95% of effects, {name}",
                    lowest=0.9,
                )
                for name in ("chemotherapy against nothing", "chemotherapy against radiotherapy")
            ),
        ),
        Experiment(
            "real-icu",
            "Real records of intensive care, one hour ahead",
            "The first thirty hours of each stay; in the paper, diastolic blood pressure under vasopressors and "
            "ventilation. The paper claims that coverage is near nominal, with wider intervals than those of TE-CDE, "
            "which fails. Balancing lowers the variance of what is learned; it adjusts for no confounding.",
            (REAL,),
            BALANCED,
            REAL.horizons,
            ("faithfulness", "sharpness", "closeness"),
            ("95% holds", "99% holds", "95% width", "99% width", "CRPS"),
            (COVERAGE, OUTCOME_WIDTH),
            aims=(
                Aim(
                    "coverage near nominal: 95% intervals hold 92 to 98%",
                    "95% holds",
                    WITH_BALANCING.published,
                    0.92,
                    0.98,
                    whose="paper",
                ),
                Aim(
                    "TE-CDE fails: its 95% intervals hold at most 90%",
                    "95% holds",
                    WITH_BALANCING.published_beside,
                    highest=0.9,
                    whose="paper",
                ),
                Aim(
                    "TE-CDE is narrower",
                    "95% width",
                    WITH_BALANCING.published_beside,
                    than=WITH_BALANCING.published,
                    whose="paper",
                ),
                *OURS_NOMINAL,
                Aim("CRPS not above that of the last value", "CRPS", than="LastValue"),
            ),
        ),
        Experiment(
            "semi-synthetic",
            "Real covariates, simulated treatment and outcome, one hour ahead",
            "The paper claims, with balancing, intervals that hold all outcomes and are narrower than TE-CDE's, and "
            "errors that stay smaller as the noise of the outcome grows. Its printed equations let outcomes explode; "
            "here their gain is bounded. Covariates that were filled forward and outcomes that were not recorded hide "
            "part of what treatment follows.",
            (SEMI_SYNTHETIC,),
            BALANCED,
            SEMI_SYNTHETIC.horizons,
            ("faithfulness", "sharpness", "closeness", "point_error"),
            (
                "95% holds",
                "99% holds",
                "95% holds, other choice",
                "95% width ÷ oracle",
                "CRPS ÷ oracle",
                "mean squared error ÷ oracle",
                "mean squared error at noise 0.01",
                "mean squared error at noise 0.1",
            ),
            (COVERAGE, OUTCOME_WIDTH, SQUARED, MEDIAN_SQUARED),
            aims=(
                Aim("99% intervals hold all", "99% holds", WITH_BALANCING.published, lowest=1.0, whose="paper"),
                WITH_BALANCING.sharp[0],
                WITH_BALANCING.exact[0],
                Aim(
                    "the same as the noise grows to 0.1",
                    "mean squared error at noise 0.1",
                    WITH_BALANCING.published,
                    than=WITH_BALANCING.published_beside,
                    whose="paper",
                ),
                *OURS_NOMINAL,
            ),
        ),
    )
}
