"""Curves of models side by side."""

from counterpath.figures.experiments import Row, draw_curves
from counterpath.figures.style import INK


def test_each_model_has_a_line_and_several_seeds_a_band(tmp_path):
    curves = {("A", "Δ = 1"): [[1.0, 2.0], [3.0, 4.0]], ("limit", "Δ = 1"): [[0.5, 0.6]], ("A", "Δ = 2"): [[5.0, 6.0]]}
    row = Row("error", "noise", (0.01, 0.02), scale="log", reference=1.0, curves=curves)
    paths = [tmp_path / "figure.png", tmp_path / "figure.svg"]
    figure = draw_curves([row], ["Δ = 1", "Δ = 2"], ["A", "B"], ["limit"], title="How large?", paths=paths)
    first, second = figure.axes
    assert first.get_ylabel() == "error"
    assert first.get_yscale() == "log"
    band = first.collections[0].get_paths()[0].vertices[:, 1]
    assert (band.min(), band.max()) == (1.0, 4.0)  # all seeds, and never below zero
    lines = {line.get_label(): line for line in first.get_lines()}
    assert lines["A"].get_ydata().tolist() == [2.0, 3.0]  # the mean over seeds
    assert lines["limit"].get_color() == INK
    assert len(first.collections) == 1
    assert not second.collections
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["A", "limit"]
    assert all(path.stat().st_size > 1_000 for path in paths)


def test_shares_near_one_are_set_apart_and_stay_in_view(tmp_path):
    curves = {("A", "Δ = 1"): [[0.95, 1.0]], ("B", "Δ = 1"): [[0.2, 0.3]]}
    row = Row("outcomes inside", "level", (0.95, 0.99), scale="logit", reference="diagonal", curves=curves)
    figure = draw_curves([row], ["Δ = 1"], ["A", "B"], [], title="Inside?", paths=[tmp_path / "figure.png"])
    (axes,) = figure.axes
    assert axes.get_ylim()[0] < 0.2
    assert axes.get_ylim()[1] == 0.999
    labels = [text.get_text() for text in axes.get_yticklabels()]
    assert labels == ["0.2", "0.5", "0.8", "0.9", "0.95", "0.99", "0.999"]  # nothing between, which would overlap


def test_an_axis_of_shares_near_one_has_room_for_more_of_them(tmp_path):
    row = Row("inside", "level", (0.95, 0.99), "logit", "diagonal", {("A", "Δ = 1"): [[0.93, 0.99]]})
    figure = draw_curves([row], ["Δ = 1"], ["A"], [], title="Inside?", paths=[tmp_path / "figure.png"])
    labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert labels == ["0.95", "0.97", "0.98", "0.99", "0.999"]


def test_who_stays_below_the_axis_is_named_there_and_keeps_the_legend(tmp_path):
    curves = {("A", "Δ = 1"): [[0.94, 0.99]], ("B", "Δ = 1"): [[0.1, 0.15]], ("C", "Δ = 2"): [[0.95, 0.98]]}
    row = Row("inside", "level", (0.95, 0.99), "logit", "diagonal", curves, lowest=0.8)
    paths = [tmp_path / "figure.png"]
    figure = draw_curves([row], ["Δ = 1", "Δ = 2"], ["A", "B", "C", "D"], [], title="Inside?", paths=paths)
    first, second = figure.axes
    assert first.get_ylim() == (0.8, 0.999)
    assert [text.get_text() for text in first.texts] == ["not measured: C\nbelow: B 10% to 15%"]
    assert [text.get_text() for text in second.texts] == ["not measured: A, B"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["A", "B", "C", "nominal"]


def test_a_seed_that_lacks_a_point_has_the_others(tmp_path):
    curves = {("A", "arms"): [[1.0, float("nan"), 3.0], [2.0, float("nan"), 5.0]]}
    row = Row("CRPS ÷ oracle", "days ahead", (1.0, 2.0, 3.0), "log", 1.0, curves)
    (axes,) = draw_curves([row], ["arms"], ["A"], [], title="Close?", paths=[tmp_path / "figure.png"]).axes
    line = next(line for line in axes.get_lines() if line.get_label() == "A")
    assert line.get_xdata().tolist() == [1.0, 3.0]
    assert line.get_ydata().tolist() == [1.5, 4.0]


def test_many_rows_of_one_column_stand_in_two(tmp_path):
    rows = [Row(name, "x", (1.0, 2.0), "linear", None, {("A", "Δ = 1"): [[1.0, 2.0]]}) for name in "abc"]
    figure = draw_curves(rows, ["Δ = 1"], ["A"], [], title="Many?", paths=[tmp_path / "figure.png"])
    assert [axes.get_ylabel() for axes in figure.axes] == ["a", "b", "c", ""]
    assert [axes.axison for axes in figure.axes] == [True, True, True, False]


def test_a_published_configuration_is_dashed_in_the_colour_of_its_model(tmp_path):
    models = ["A", "A.paper", "B, weighted", "B.paper, weighted", "C.paper"]
    curves = {(model, "Δ = 1"): [[1.0, 2.0]] for model in models}
    row = Row("width", "level", (0.95, 0.99), scale="linear", reference=None, curves=curves)
    figure = draw_curves([row], ["Δ = 1"], models, [], title="Wide?", paths=[tmp_path / "figure.png"])
    lines = {line.get_label(): line for line in figure.axes[0].get_lines()}
    assert lines["A"].get_color() == lines["A.paper"].get_color()
    assert lines["B, weighted"].get_color() == lines["B.paper, weighted"].get_color()
    assert [lines[model].get_linestyle() for model in models] == ["-", "--", "-", "--", "-"]
    assert len({line.get_color() for line in lines.values()}) == 3
