"""The whole GPT-2 block in a browser: two pictures, boxes that lead on, and one edit through every step."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from engine import Edit, presets, run
from tests.browser.conftest import Visit
from tests.browser.support import ATTENTION, LANGUAGES, Reader, label

PICTURES = ".gb-board .gb-flow"
GOOD = "probabilities[0,4,5120]"


def places(reader: Reader) -> list[tuple[float, float, float]]:
    """Left and top edge and width of every picture."""
    boxes = [picture.bounding_box() for picture in reader.page.locator(PICTURES).all()]
    return [(box["x"], box["y"], box["width"]) for box in boxes if box]


def test_the_pictures_stand_side_by_side_or_one_below_the_other(visit: Visit) -> None:
    for width in (1440, 390):
        reader = visit(viewport={"width": width, "height": 900})
        reader.open("block", preset="today")
        reader.wait_until_drawn(GOOD)
        (left, top, wide), (right, below, _) = places(reader)
        if width > 1000:
            assert right >= left + wide
            assert top == pytest.approx(below, abs=1)
        else:
            assert left == pytest.approx(right, abs=1)
            assert below > top
        overflow = reader.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert overflow <= 0


@pytest.mark.parametrize("language", LANGUAGES)
def test_boxes_that_differ_are_marked_and_lead_to_their_lesson(reader: Reader, language: str) -> None:
    reader.open("block", preset="today", lang=language)
    reader.wait_until_drawn(GOOD)
    ours = reader.page.locator(PICTURES).first
    box = ours.locator(".gb-flow-block", has_text="GELU")
    expect(box.locator(".gb-differs-mark")).to_have_text("≠", use_inner_text=True)
    same = ours.locator(".gb-flow-block", has_text=label("flow_qkv", language))
    expect(same.locator(".gb-differs-mark")).to_have_count(0)
    box.get_by_role("button", name="GELU").click()
    reader.page.wait_for_function("location.pathname === '/gelu'")


def test_an_edit_runs_through_every_step(reader: Reader) -> None:
    """The first number of 真's row, against the engine; the article's own softmax stays as it is."""
    reader.open("block", preset="today")
    reader.wait_until_drawn(GOOD)
    assert reader.number(GOOD) == pytest.approx(0.85, abs=1e-9)
    printed = reader.number("block.weights[4]")
    reader.edit("embedding.weight[4096,0]", 0.4)
    trace = run(presets.load("today"), "今天天气真", edits=[Edit("embedding.weight", (4096, 0), 0.4)])
    reader.wait_for_number(GOOD, float(trace["probabilities"].row(0, 4)[5120]), tolerance=1e-12)
    steps = {f"{ATTENTION}.weights": (0, 0, 4, 3), "layers.0.mlp.up": (0, 4, 47), "layers.0.output": (0, 4, 0)}
    for name, index in steps.items():
        reference = f"{name}[{','.join(map(str, index))}]"
        assert reader.number(reference) == pytest.approx(trace[name].data[index], abs=1e-12)
    assert reader.number("block.weights[4]") == printed
