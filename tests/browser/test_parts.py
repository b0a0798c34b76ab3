"""Lessons 15 to 18 in a browser: what their sliders and parameters move, and what stays."""

from __future__ import annotations

from itertools import product
from math import sqrt

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.browser.support import Reader, label


def slide(reader: Reader, key: str, *presses: str) -> None:
    slider = reader.page.locator(".gb-control", has_text=label(key, "en")).locator("input[type=range]")
    slider.focus()
    reader.press(*presses)
    reader.wait_until_answered()


def moved(reader: Reader, before: dict[str, float], part: str, least: float = 1e-12) -> set[bool]:
    """Whether the cells whose names hold `part` have another number than before."""
    now = reader.numbers()
    found = {abs(now[reference] - before[reference]) > least for reference in before if part in reference}
    assert found, part
    return found


def test_positions_shifted(reader: Reader) -> None:
    """With RoPE the angles change and the scores stay; the learned scores one place later are others."""
    reader.open("positions", preset="today")
    scores = [[reader.number(f"positions.{way}.scores[0,0,{row},3]") for row in (1, 2)] for way in ("none", "learned")]
    assert scores[0][0] == scores[0][1]
    assert scores[1] == pytest.approx([1.9, 1.0], abs=1e-12)
    before = reader.numbers()
    slide(reader, "slider_offset", "ArrowRight", "ArrowRight")
    reader.wait_for_edits({"positions.rope.offset[]": 2.0})
    assert moved(reader, before, "rope.angles") == {True}
    assert moved(reader, before, "rope.scores") == {False}
    assert moved(reader, before, "learned.scores") == {False}

    # a row of the table belongs to one position: its row and its column follow
    reader.edit("position_embedding.weight[2,0]", 1.0)
    reader.wait_until_answered()
    now = reader.numbers()
    for row, column in product(range(5), repeat=2):
        score = f"positions.learned.scores[0,0,{row},{column}]"
        assert (now[score] != before[score]) == (2 in (row, column)), score
    assert moved(reader, before, "none.scores") == {False}


def test_a_constant_added_to_every_feature(reader: Reader) -> None:
    """LayerNorm does not notice, RMSNorm does, and the strip's prediction has no part in it."""
    reader.open("layernorm")
    before = reader.numbers()
    slide(reader, "slider_shift", "ArrowRight", "ArrowRight")
    reader.wait_for_edits({"layernorm.shift[]": 0.2})
    assert moved(reader, before, "layernorm.layer_norm.output") == {False}
    assert True in moved(reader, before, "layernorm.rms_norm.output")
    assert moved(reader, before, "after.skewness") == {False}
    expect(reader.in_strip(".gb-prediction s")).to_have_count(0)

    for place, number in enumerate((5, 5, 5, 5)):
        reader.edit(f"layernorm.own.x[{place}]", number)
    reader.wait_for_number("layernorm.own.layer_norm.normalized[3]", 0.0)
    assert reader.number("layernorm.own.rms_norm.normalized[0]") == pytest.approx(1.0, abs=1e-6)
    assert reader.message() is None


def test_an_x_of_the_reader_s_own(reader: Reader) -> None:
    reader.open("gelu", preset="today")
    reader.edit("gelu.own.x[]", 2.0)
    reader.wait_for_number("gelu.own.relu_squared[]", 4.0)
    assert reader.number("gelu.own.relu_squared_slope[]") == 4.0
    assert reader.text("gelu.own.gelu_tanh[]") == "1.9546"
    slide(reader, "slider_x", "Home")
    reader.wait_for_number("gelu.own.x[]", -4.0)
    assert reader.number("gelu.own.relu_slope[]") == 0
    reader.select("gelu.own.steps.tanh[]")
    assert reader.formula() == "gelu.own.steps.tanh = tanh(−5.4749) = −1.0000"


def test_a_dead_unit_is_woken(reader: Reader) -> None:
    reader.open("gelu", preset="today")
    assert reader.text("layers.0.gelu.dead[0]") == "3"
    assert reader.number("layers.0.gelu.relu_gradient[0,36]") == 0
    assert reader.number("layers.0.gelu.gelu_gradient[0,36]") != 0
    reader.edit("layers.0.mlp.b_up[36]", 0.5)
    reader.wait_for_number("layers.0.gelu.dead[0]", 2.0)
    assert reader.number("layers.0.gelu.relu_gradient[0,36]") != 0


def test_another_mask(visit: Visit, reader: Reader) -> None:
    """Seed and p change what is dropped and nothing of the model; a link brings both back."""
    reader.open("dropout", preset="today")
    assert reader.number("dropout.mask[0,4,7]") == 0
    before = reader.numbers()
    slide(reader, "slider_seed", "ArrowRight")
    reader.wait_for_edits({"dropout.seed[]": 2.0})
    assert reader.number("dropout.mask[0,4,7]") == pytest.approx(1 / 0.9, rel=1e-12)
    reader.edit("dropout.p[]", 0.5)
    reader.wait_for_number("dropout.share_kept[]", 0.5)
    now = reader.numbers()
    masks = {now[reference] for reference in now if reference.startswith("dropout.mask[")}
    assert masks == {0.0, 2.0}
    means = [now[f"dropout.many.mean_mask[{feature}]"] for feature in range(12)]
    assert all(abs(mean - 1) < 4 / sqrt(250) for mean in means)
    assert moved(reader, before, "layers.0.output") == {False}
    expect(reader.in_strip(".gb-prediction s")).to_have_count(0)

    other = visit()
    reader.wait_for_edits({"dropout.seed[]": 2.0, "dropout.p[]": 0.5})
    other.page.goto(reader.page.url)
    other.wait_until_drawn("dropout.draws[0,0,0]")
    assert {name: number for name, number in other.numbers().items() if "dropout." in name} == {
        name: number for name, number in now.items() if "dropout." in name
    }
