"""Curves of models side by side."""

from counterpath.figures.experiments import Row, draw_curves
from counterpath.figures.style import INK


def test_each_model_has_a_line_and_several_seeds_a_band(tmp_path):
    curves = {("A", "Δ = 1"): [[1.0, 2.0], [3.0, 4.0]], ("limit", "Δ = 1"): [[0.5, 0.6]], ("A", "Δ = 2"): [[5.0, 6.0]]}
    row = Row("error", "noise", (0.01, 0.02), logarithmic=True, reference=1.0, curves=curves)
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
