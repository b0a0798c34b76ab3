"""Lesson 36 in a browser: a cell of the picture is clicked, carried over with one press, undone, and linked."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.browser.support import Reader, label

AFTER = "layers.1.output[0,2,3]"
DIFFERENCE = "patch.difference[0]"


def click(reader: Reader, layer: int, position: int) -> None:
    """Click a cell of the 3 × 3 picture; rows count from below."""
    reader.page.locator(".js-plotly-plot .heatmaplayer image").wait_for()
    plot = reader.page.locator(".js-plotly-plot .nsewdrag").first
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    assert box is not None
    x, y = (position + 0.3) / 3 * box["width"], (1 - (layer + 0.6) / 3) * box["height"]
    # Plotly notices what is pointed at before it is clicked
    plot.hover(position={"x": x, "y": y})
    reader.page.locator(".hoverlayer .hovertext").wait_for()
    plot.click(position={"x": x, "y": y})


def press(reader: Reader, key: str) -> None:
    reader.page.get_by_role("button", name=label(key, "en"), exact=True).click()


def test_a_place_is_clicked_and_carried_over(visit: Visit) -> None:
    reader, other = visit(), visit()
    reader.open("patch")
    click(reader, 2, 2)
    reader.wait_for_text(".st-key-card_patch_place", r"Share of the way: 1\.0000")
    reader.wait_for_address(has="carried_layer=2")
    # the board's layer goes along
    reader.wait_until_drawn("layers.1.mlp.output[0,0,0]")
    before = reader.numbers()
    press(reader, "patch_carry")
    reader.wait_for_change(AFTER, before[AFTER])
    assert reader.marked("gb-edited") == {f"layers.1.output[0,2,{feature}]" for feature in range(4)}
    assert reader.number(DIFFERENCE) == pytest.approx(1.0725, abs=5e-5)
    reader.wait_for_address(has="edits=")
    other.page.goto(reader.page.url)
    other.wait_until_drawn(AFTER)
    assert other.numbers() == reader.numbers()
    reader.in_strip(".gb-strip-history button").first.click()
    reader.wait_for_number(DIFFERENCE, before[DIFFERENCE])
    reader.page.get_by_role("button", name=label("patch_carry", "en"), exact=True).wait_for()
    assert reader.numbers() == before


def test_a_wrong_sentence_is_explained_and_mended(reader: Reader) -> None:
    reader.open("patch", preset="today")
    field = reader.page.get_by_role("textbox", name=label("patch_other", "en"))
    field.fill("今天")
    field.press("Enter")
    reader.wait_for_text(".card-refusal", "has 2 tokens and yours 5")
    expect(reader.page.locator(".js-plotly-plot")).to_have_count(0)
    field.fill("今差天气真")
    field.press("Enter")
    reader.page.locator(".card-refusal").wait_for(state="detached")
    reader.page.locator(".js-plotly-plot .heatmaplayer image").wait_for()
    reader.wait_for_query({**reader.query, "other": "今差天气真"})
