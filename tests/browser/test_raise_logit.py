"""Lesson 39 in a browser: a search on demand, and an edit that is applied with one click."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from engine import presets
from engine.search import smallest_edit
from tests.browser.support import Reader, label

OWN_ROW = "lm_head.weight[91,3]"


def test_the_smallest_edit_is_found_applied_and_undone(reader: Reader) -> None:
    """Strip, board, slopes and link follow, and the page offers to take it back."""
    best = smallest_edit(presets.load("cats"), [12, 45, 78], 91).found[0]
    reader.open("raise_logit")
    # the slope along the token's own row is what the head reads
    assert reader.number("gradient.lm_head.weight[90,3]") == pytest.approx(1.7522, abs=5e-5)
    assert reader.page.get_by_role("button", name="Find the smallest edit for mats · 90").is_disabled()
    reader.page.get_by_role("button", name="Find the smallest edit for chairs · 91").click()
    apply = reader.page.get_by_role("button", name="Apply: lm_head.weight[chairs, c3]", exact=True)
    # on a phone the table of what was found has a window of its own, which fades where it goes on
    size = reader.page.viewport_size
    assert size is not None
    reader.page.set_viewport_size({"width": 390, "height": 844})
    window = reader.page.get_by_role("region", name=label("raise_search", "en"), exact=True)
    window.focus()
    assert window.evaluate("(node) => node.scrollWidth > node.clientWidth")
    expect(window).to_have_css("mask-size", "100% 100%")
    window.evaluate("(node) => node.scrollTo(9999, 0)")
    expect(window).to_have_css("mask-size", "calc(100% + 36px) 100%")
    reader.page.set_viewport_size(size)
    apply.click()
    reader.wait_for_number(OWN_ROW, best.after)
    reader.wait_for_edits({OWN_ROW: best.after})
    expect(reader.in_strip(".gb-prediction")).to_contain_text("chairs", use_inner_text=True)
    expect(reader.page.get_by_role("button", name="Take back: lm_head.weight[chairs, c3]", exact=True)).to_be_visible()
    reader.in_strip(".gb-strip-history button").first.click()
    reader.wait_for_number(OWN_ROW, -0.1)
    apply.wait_for()
