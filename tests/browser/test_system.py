"""Lesson 28 in a browser: two columns around the model, both loops, ways by key into the lessons, and a phone."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.browser.support import Reader, label

LOSS, TEXT, LAST = "loss[]", "system.text[0,3]", "layers.1.output[0,2,3]"
CHANGE = "optimizer.sgd.lm_head.weight.change[90,3]"


def left(reader: Reader, cell: str) -> float:
    """Where the box of a cell begins, from the left."""
    box = reader.page.locator(".gb-flow-block", has=reader.cell(cell)).last.bounding_box()
    assert box is not None
    return box["x"]


def test_both_sides_stand_around_the_model_and_lead_into_their_lessons(reader: Reader) -> None:
    reader.open("system")
    assert left(reader, LOSS) == left(reader, "targets[0,0]") < left(reader, TEXT) == left(reader, "system.prompt[0,0]")
    expect(reader.page.locator(".gb-branches path:not(.gb-branch-head)")).to_have_count(2)
    assert reader.text(TEXT) == "#175"
    loss, change, prompt = reader.number(LOSS), reader.number(CHANGE), reader.text("system.prompt[0,0]")
    assert prompt == "Cats"
    reader.edit(LAST, 1.0)
    assert reader.number(LOSS) != loss
    assert reader.number(CHANGE) != change
    reader.page.get_by_role("slider", name="temperature T").focus()
    reader.press("Home")
    reader.wait_for_number(TEXT, 90.0)
    assert reader.text(TEXT) != "#175"
    # equal ratios lead to the very end
    top_k = reader.page.get_by_role("slider", name=label("slider_top_k", "en"))
    top_k.focus()
    reader.press("End")
    expect(top_k).to_have_attribute("aria-valuetext", "256")
    assert top_k.evaluate("(node) => node.value === node.max")
    way = reader.page.get_by_role("button", name="Backward: length of the gradient", exact=True)
    way.focus()
    reader.press("Enter")
    reader.arrive("backward", LOSS)


def test_on_a_phone_one_side_follows_the_other(visit: Visit) -> None:
    reader = visit(viewport={"width": 390, "height": 844})
    reader.open("system", lang="zh")
    assert left(reader, LOSS) == left(reader, TEXT)
    assert reader.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
