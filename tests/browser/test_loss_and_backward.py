"""Following a gradient in the browser: tensor and gradient one above the other, and the slope beside them."""

from __future__ import annotations

import pytest

from tests.browser.support import Reader, label

Q, BACK = "layers.0.attention.q_rotated[0,0,2,1]", "gradient.layers.0.attention.q_rotated[0,0,2,1]"
FACTS = """() => Object.fromEntries([...document.querySelectorAll(".gb-facts dt")].map(
    (term) => [term.textContent, Number(term.nextElementSibling.textContent.replace("\\u2212", "-"))]))"""


def test_a_gradient_and_the_slope_beside_it(reader: Reader) -> None:
    """Formula, link to its tensor's cell and a difference that agrees; a value set by hand moves them all."""
    reader.open("backward")
    above, under = (reader.cell(each).bounding_box() for each in (Q, BACK))
    assert above is not None
    assert under is not None
    assert above["x"] == pytest.approx(under["x"], abs=8), "in the same column"
    assert above["y"] < under["y"] < above["y"] + 300
    reader.select(BACK)
    assert reader.formula().startswith("∂loss/∂L1·q_rotated[h0, on, d1] = ")
    told = reader.page.evaluate(FACTS)
    recorded, difference = told[label("check_recorded", "en")], next(
        number for words, number in told.items() if "five-point" in words
    )
    assert recorded == pytest.approx(reader.number(BACK), rel=1e-8)
    assert difference == pytest.approx(recorded, abs=1e-9)
    reader.page.locator(".gb-facts button").first.click()
    reader.wait_for_selection(Q)
    assert reader.page.evaluate(FACTS)[label("check_recorded", "en")] == recorded

    before = reader.number(BACK)
    reader.edit(Q, 0.5)
    reader.wait_for_change(BACK, before)
    reader.wait_until_answered()
    assert reader.page.evaluate(FACTS)[label("check_recorded", "en")] == pytest.approx(reader.number(BACK), rel=1e-8)
    assert set(reader.numbers("gradient.layers.0.attention.q[0,2").values()) != {0.0}


def test_the_token_that_should_come_is_chosen(reader: Reader) -> None:
    """Only the last position's surprise moves; the link keeps the choice."""
    reader.open("loss")
    before = reader.numbers("loss.per_position")
    reader.choose(label("choose_target", "en"), "chairs · 91")
    reader.wait_for_change("loss.per_position[0,2]", before["loss.per_position[0,2]"])
    after = reader.numbers("loss.per_position")
    assert {cell: after[cell] for cell in after if cell != "loss.per_position[0,2]"} == {
        cell: before[cell] for cell in before if cell != "loss.per_position[0,2]"
    }
    assert reader.number("loss[]") == pytest.approx(sum(after.values()) / 3)
    assert reader.text("targets[0,2]") == "chairs"
    reader.wait_for_address(has="target=91")
