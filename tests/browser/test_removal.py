"""Leaving parts out as a reader does it: by clicking a small grid, by keys, back again; and the way from the heads."""

from __future__ import annotations

from math import inf

import pytest
from playwright.sync_api import Locator, expect

from engine import Mean
from tests.browser.support import Reader

WEIGHT, HEAD = "layers.0.attention.weights[0,1,2,1]", "layers.0.attention.head_output[0,0,2,1]"
UNIT = "layers.0.mlp.activation[0,1,3]"


def offer(reader: Reader, part: str, choice: str) -> Locator:
    group = reader.page.get_by_role("group", name=part, exact=True)
    return group.get_by_role("button", name=choice, exact=True)


def lines(reader: Reader) -> list[str]:
    return [line.replace("\n", " · ") for line in reader.page.locator(".gb-removed-list li").all_inner_texts()]


def test_parts_are_left_out_by_click_and_key_and_put_back(reader: Reader) -> None:
    reader.open("remove")
    before = reader.numbers()
    reader.select(WEIGHT)
    masked = offer(reader, "what on (2) reads of sit (1) in layer 1, head 1", "mask")
    masked.click()
    reader.wait_for_number(WEIGHT, 0.0)
    readout = reader.cell(WEIGHT).locator("xpath=ancestor::figure").locator(".gb-readout")
    expect(readout).to_have_text("query on 2, key sit 1 = 0.0000", use_inner_text=True)
    # the others grow: they still sum to 1
    kept = [reader.number(f"layers.0.attention.weights[0,1,2,{key}]") for key in (0, 2)]
    assert sum(kept) == pytest.approx(1.0)
    expect(masked).to_have_attribute("aria-pressed", "true")

    # by keys alone: X leads from a cell to the buttons, Escape back to the cell
    reader.focus(UNIT)
    reader.press("x")
    chosen = offer(reader, "hidden unit f3 of layer 1, at sit (1) only", "set to 0")
    reader.page.wait_for_function("document.activeElement.matches('.gb-choice')")
    reader.press("Enter")
    reader.wait_for_number(UNIT, 0.0)
    expect(chosen).to_have_attribute("aria-pressed", "true")
    reader.press("Escape")
    reader.page.wait_for_function("(reference) => document.activeElement.dataset.ref === reference", arg=UNIT)

    reader.select(HEAD)
    offer(reader, "layer 1 · head 0", "set to the mean").click()
    mean = sum(before[f"layers.0.attention.head_output[0,0,{position},1]"] for position in range(3)) / 3
    reader.wait_for_number(HEAD, mean, 1e-12)
    assert lines(reader) == [
        "what on (2) reads of sit (1) in layer 1, head 1 · masked with −∞ · Put back",
        "hidden unit f3 of layer 1, at sit (1) only · set to 0 · Put back",
        "layer 1 · head 0 · set to the mean over the positions · Put back",
    ]
    reader.wait_for_edits({
        "layers.0.attention.masked_scores[0,1,2,1]": -inf, UNIT: 0.0, "layers.0.attention.head_output[0,0]": Mean(),
    })
    reader.page.reload()
    reader.wait_until_drawn()
    reader.wait_for_number(HEAD, mean, 1e-12)
    assert len(lines(reader)) == 3
    reader.page.get_by_role("button", name="Put back: layer 1 · head 0").click()
    reader.wait_for_change(HEAD, mean)
    reader.page.get_by_role("button", name="Put all back").click()
    reader.wait_for_change(WEIGHT, 0.0)
    assert reader.numbers() == before
    expect(reader.page.locator(".gb-removed-none")).to_be_visible()


def test_from_the_ranking_to_the_head(reader: Reader) -> None:
    """The head that moves the chosen token most stands first, and leads to its own picture."""
    reader.open("heads", preset="scratch")
    rows = reader.page.locator(".gb-ranking-table tbody tr")
    expect(rows).to_have_count(4)
    first = rows.first.locator("th").inner_text()
    assert first == "layer 1 · head 1"
    rows.first.get_by_role("button", name="Remove a part").click()
    reader.arrive("remove", WEIGHT)
    reader.wait_for_address(has="head=1")
    expect(reader.in_strip(".gb-chooser select").nth(1)).to_have_value("1")
