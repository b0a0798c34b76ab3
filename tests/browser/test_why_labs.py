"""The labs that ask why, as a reader works them: parts switched off, weights made larger, another draw."""

from __future__ import annotations

from math import sqrt

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.conftest import Visit
from tests.browser.support import Reader

ATTENTION, MLP = "layers.0.attention.output", "layers.0.mlp.output"


def switch(reader: Reader, name: str) -> Locator:
    return reader.page.get_by_role("switch", name=name, exact=True)


def test_a_part_is_switched_off_and_brought_back(reader: Reader) -> None:
    """All cells of its output are 0 at once; strip, chart, undo and link follow."""
    reader.open("why_layers")
    before = reader.numbers()
    mlp, layer = switch(reader, "MLP · Layer 1"), switch(reader, "whole layer · Layer 1")
    assert mlp.is_checked()
    mlp.focus()
    reader.press("Space")
    reader.wait_for_number(f"{MLP}[0,2,3]", 0.0)
    reader.wait_until_answered()
    assert set(reader.numbers(MLP).values()) == {0.0}
    assert not mlp.is_checked()
    assert layer.is_checked(), "its attention still works"
    assert len(reader.marked("gb-edited")) == 12
    assert reader.number("logits[0,2,90]") != before["logits[0,2,90]"]
    expect(reader.in_strip(".gb-prediction s")).to_have_text("mats 0.9073", use_inner_text=True)
    reader.wait_for_edits({f"{MLP}[0]": 0.0})

    # Δ: what comes before stays, what comes after moves
    reader.in_strip(".gb-mode").nth(1).click()
    reader.wait_for_address(has="mode=delta")
    assert reader.text(f"{ATTENTION}[0,2,3]") == "·"
    assert reader.text("layers.0.residual1[0,2,3]") == "·"
    for later in ("layers.0.output[0,2,3]", "layers.1.attention.output[0,2,3]", "logits[0,2,90]"):
        assert reader.text(later) != "·", later
    reader.in_strip(".gb-mode").nth(0).click()

    layer.focus()
    reader.press("Space")
    reader.wait_for_number(f"{ATTENTION}[0,2,3]", 0.0)
    reader.wait_until_answered()
    for feature in range(4):
        assert reader.number(f"layers.0.output[0,2,{feature}]") == before[f"embedding.output[0,2,{feature}]"]
    assert not switch(reader, "attention · Layer 1").is_checked()
    reader.in_strip(".gb-strip-history button").first.click()
    reader.wait_for_change(f"{ATTENTION}[0,2,3]", 0.0)
    assert switch(reader, "attention · Layer 1").is_checked()
    mlp.focus()
    reader.press("Space")
    reader.wait_for_change(f"{MLP}[0,2,3]", 0.0)
    reader.wait_until_answered()
    assert reader.numbers() == before
    reader.wait_for_address(lacks="edits=")


def test_a_link_opens_with_the_part_left_out(visit: Visit) -> None:
    reader, other = visit(), visit()
    reader.open("why_layers", preset="today")
    reader.page.get_by_role("switch", name="whole layer · Layer 1", exact=True).press("Space")
    reader.wait_for_number(f"{MLP}[0,4,3]", 0.0)
    reader.wait_until_answered()
    reader.wait_for_address(has="edits=")
    other.page.goto(reader.page.url)
    other.wait_until_drawn(f"{MLP}[0,4,3]")
    assert not switch(other, "whole layer · Layer 1").is_checked()
    assert other.numbers() == reader.numbers()


def test_the_size_of_the_weights(reader: Reader) -> None:
    """Small weights: the plain stack vanishes. Large ones: it explodes, and only the norm keeps measure."""
    reader.open("why_residuals")
    sizes = {path: f"why_residuals.{path}.1.gradient_size[]" for path in ("plain", "residual", "normed")}
    slider = reader.page.locator(".gb-control input[type=range]").last
    slider.focus()
    reader.press("Home")
    reader.wait_for_number("why_residuals.gain[]", 0.1)
    assert reader.number(sizes["plain"]) < 1e-12
    assert reader.number(sizes["residual"]) == pytest.approx(1, abs=0.1)
    reader.press("End")
    reader.wait_for_number("why_residuals.gain[]", 5.0)
    plain, residual, normed = (reader.number(reference) for reference in sizes.values())
    assert residual > plain > 1000
    assert normed < 30
    reader.page.locator(".js-plotly-plot .scatterlayer").wait_for()
    # ∂L/∂x = ∂L/∂out · 1 + what came back by way of f
    for unit in range(4):
        arriving, through, total = (
            reader.number(f"why_residuals.residual.{name}[{unit}]")
            for name in ("2.gradient", "1.through", "1.gradient")
        )
        assert total == pytest.approx(arriving + through, rel=1e-15)


def test_another_draw(reader: Reader) -> None:
    """The seed is a whole number, changes every drawn cell, and is explained down to it."""
    reader.open("why_sqrt")
    before = reader.numbers()
    slider = reader.page.locator(".gb-control input[type=range]").first
    expect(reader.page.locator(".gb-control-value").first).to_have_text("0", use_inner_text=True)
    slider.focus()
    reader.press("ArrowRight")
    first = "why_sqrt.D4.q[0,0]"
    reader.wait_for_change(first, before[first])
    reader.wait_until_answered()
    expect(reader.page.locator(".gb-control-value").first).to_have_text("1", use_inner_text=True)
    after = reader.numbers()
    for reference, number in after.items():
        assert (number == before[reference]) is ("sqrt_head_size" in reference), reference
    assert after["why_sqrt.D512.sqrt_head_size[]"] == sqrt(512)
    reader.select(first)
    assert "normal([" in reader.formula()
    reader.wait_for_edits({"why_sqrt.seed[]": 1.0})
