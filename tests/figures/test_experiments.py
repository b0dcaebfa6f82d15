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
