"""Charts show the trace."""

from __future__ import annotations

import pytest

from tests.ui.support import EVERY_PRESET, applies, edit, lessons, reader, strictly

WQ = "layers.0.attention.Wq"


@EVERY_PRESET
def test_charts_show_the_trace(preset: str) -> None:
    for name, lesson in lessons().items():
        if lesson.chart is None or not applies(name, preset):
            continue
        state = reader(name, preset=preset)
        edit(state, WQ, (0, 1), 0.5)
        figure = lesson.chart(state)
        strictly(figure)
        assert figure["data"], name
        assert "-0.0000" not in strictly(figure)


def test_bars_show_the_logits_of_the_article() -> None:
    chart = lessons()["lm_head"].chart
    assert chart is not None
    bars = chart(reader())["data"][0]
    assert bars["y"] == ["mats · 90", "chairs · 91", "volcano · 92"]
    assert bars["x"] == pytest.approx([0.9073, -0.0911, 0.0], abs=5e-5)
    assert bars["text"] == ["0.9073", "−0.0911", "0.0000"]


def test_the_rope_plane_turns_on_from_one_point_to_the_other() -> None:
    """Article: Q_on [0.2981, 0.5963] → [−0.6663, 0.0230]."""
    chart = lessons()["rope"].chart
    assert chart is not None
    before, after, *_ = chart(reader())["data"]
    assert (before["x"][7], before["y"][7]) == pytest.approx((0.2981, 0.5963), abs=5e-5)
    assert (after["x"][7], after["y"][7]) == pytest.approx((-0.6663, 0.0230), abs=5e-5)


@pytest.mark.parametrize(("pairing", "pairs"), [("interleaved", [(0, 1), (2, 3)]), ("half", [(0, 2), (1, 3)])])
def test_the_rope_plane_has_every_pair(pairing: str, pairs: list[tuple[int, int]]) -> None:
    chart = lessons()["rope"].chart
    assert chart is not None
    state = reader(preset="scratch", pairing=pairing, head=1, layer=1)
    figure = chart(state)
    arrows = [(series["xaxis"], series["yaxis"]) for series in figure["data"]]
    assert arrows == [("x", "y")] * 5 + [("x2", "y2")] * 5
    for number, (first, second) in enumerate(pairs):
        suffix = "2" if number else ""
        assert figure["layout"][f"xaxis{suffix}"]["title"]["text"] == f"d{first}"
        assert figure["layout"][f"yaxis{suffix}"]["title"]["text"] == f"d{second}"
        drawn = iter(figure["data"][5 * number:])
        for letter in "qk":
            for stage in ("heads", "rotated"):
                points = state.trace[f"layers.1.attention.{letter}_{stage}"].data[0, 1]
                series = next(drawn)
                assert series["x"][1::3] == points[:, first].tolist()
                assert series["y"][1::3] == points[:, second].tolist()
        names, turned = next(drawn), state.trace["layers.1.attention.q_rotated"].data[0, 1]
        assert names["text"] == [state.model.tokenizer.label(token) for token in state.ids]  # type: ignore[union-attr]
        assert (names["x"], names["y"]) == (turned[:, first].tolist(), turned[:, second].tolist())
    domains = [figure["layout"][axis]["domain"] for axis in ("xaxis", "xaxis2")]
    assert 0 <= domains[0][0] < domains[0][1] < domains[1][0] < domains[1][1] <= 1


@EVERY_PRESET
def test_charts_survive_numbers_that_ran_over(preset: str) -> None:
    for name, lesson in lessons().items():
        if lesson.chart is not None and applies(name, preset):
            state = reader(name, preset=preset)
            edit(state, "layers.0.norm1.weight", (0,), 1e308)
            strictly(lesson.chart(state))


@pytest.mark.parametrize("lesson", ["lm_head", "final_norm"])
def test_of_a_whole_vocabulary_the_largest_logits_are_drawn(lesson: str) -> None:
    state = reader(lesson, preset="little_world")
    chart = lessons()[lesson].chart
    assert chart is not None
    names = chart(state)["data"][0]["y"]
    assert len(names) == 16
    assert names[0] == "mats · 36"
