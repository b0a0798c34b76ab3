"""Changing a number: by typing, keys, slider and dragging; what is refused; and what the address keeps."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.support import ATTENTION, Reader, label

WQ = f"{ATTENTION}.Wq"
WQ01 = f"{WQ}[0,1]"
WQ12 = f"{WQ}[1,2]"
FIELD = ".gb-cell-field"
REFUSAL = ".gb-refusal"
SLIDER = ".gb-editor .gb-slider"
NUMBER = ".gb-editor .gb-number"


@pytest.fixture
def qkv(reader: Reader) -> Reader:
    reader.open("qkv")
    return reader


@pytest.mark.parametrize("language", ["en", "zh"])
def test_typing(reader: Reader, language: str) -> None:
    """Entries of every form are taken as they are meant, or refused with the reason."""
    reader.open("qkv", lang=language)

    # typing begins with the first character
    reader.focus(WQ01)
    reader.page.keyboard.type(".25")
    reader.press("Enter")
    reader.wait_for_number(WQ01, 0.25)
    expect(reader.page.locator(FIELD)).to_have_count(0)

    for text, value in {
        "-1e-3": -1e-3, "−0.5": -0.5, "+2": 2.0, " 0.1 ": 0.1, "3.": 3.0, "1E2": 100.0,
        "0.1234567890123456789": 0.12345678901234568, "5e-324": 5e-324,
        "-1.7976931348623157e308": -1.7976931348623157e308, "0": 0.0, ".25": 0.25,
    }.items():
        reader.type(WQ01, text)
        reader.wait_for_number(WQ01, value)
        if value:  # 0 is what the cell was, so nothing is left to keep
            reader.page.wait_for_function("location.search.includes('edits=')")
            reader.wait_for_edits({WQ01: value})

    for text, key in {
        "1,5": "comma", "1，5": "comma", "1e999": "number", "-1e999": "number", "NaN": "number", "inf": "number",
        "abc": "number", "": "number", "1.2.3": "number", "0x10": "number", "1 2": "number",
        "-inf": "minus_infinity_not_here", "−∞": "minus_infinity_not_here",
    }.items():
        field = reader.start_typing(WQ01)
        field.fill(text)
        field.press("Enter")
        refusal = reader.page.locator(REFUSAL)
        refusal.wait_for()
        expect(refusal).to_have_text(label(key, language), use_inner_text=True)
        assert refusal.get_attribute("aria-live")
        expect(field).to_have_value(text)
        expect(field).to_have_attribute("aria-invalid", "true")
        assert reader.number(WQ01) == 0.25
        reader.wait_for_edits({WQ01: 0.25})
        field.press("Escape")
        expect(reader.page.locator(REFUSAL)).to_have_count(0)
    assert reader.number(WQ01) == 0.25


def test_refused_entry_waits_to_be_mended(qkv: Reader) -> None:
    """Leaving the field by a click elsewhere loses neither the text nor the reason."""
    field = qkv.start_typing(WQ01)
    field.fill("1,5")
    qkv.page.click("h1")
    expect(qkv.page.locator(REFUSAL)).to_be_visible()
    expect(field).to_have_value("1,5")
    field.fill("1.5")
    expect(qkv.page.locator(REFUSAL)).not_to_be_visible()
    field.press("Enter")
    qkv.wait_for_number(WQ01, 1.5)


def test_stepping_and_leaving(qkv: Reader) -> None:
    """While editing ↑ ↓ step the value, Shift takes bigger steps, Escape leaves as if nothing had been."""
    field = qkv.start_typing(WQ01)
    field.press("ArrowUp")
    qkv.wait_for_change(WQ01, 0.0)
    step = qkv.number(WQ01)
    assert 0 < step <= 0.1
    field.press("Shift+ArrowUp")
    qkv.wait_for_number(WQ01, 11 * step, 1e-12)
    field.press("Alt+ArrowDown")
    qkv.wait_for_number(WQ01, 10.9 * step, 1e-12)
    field.press("Shift+ArrowDown")
    field.press("ArrowDown")
    qkv.wait_for_number(WQ01, -0.1 * step, 1e-12)
    field.press("Escape")
    qkv.wait_for_number(WQ01, 0.0)
    expect(qkv.page.locator(FIELD)).to_have_count(0)
    qkv.wait_for_address(lacks="edits=")
    assert qkv.page.evaluate("document.activeElement.dataset.ref") == WQ01

    # typed and left: nothing was sent; stepped and entered: it stays
    field = qkv.start_typing(WQ01)
    field.fill("7")
    field.press("Escape")
    assert qkv.number(WQ01) == 0.0
    field = qkv.start_typing(WQ01)
    field.press("ArrowUp")
    field.press("ArrowUp")
    field.press("Enter")
    qkv.wait_for_number(WQ01, 2 * step, 1e-12)

    # Delete takes the cell back
    qkv.focus(WQ01)
    qkv.press("Delete")
    qkv.wait_for_number(WQ01, 0.0)
    qkv.wait_for_address(lacks="edits=")


def test_slider_and_field_of_the_selected_cell(qkv: Reader) -> None:
    """Keys on the slider, dragging its thumb, a wider range, the field and the steps beside it."""
    qkv.select(WQ01)
    slider = qkv.page.locator(SLIDER)
    slider.focus()
    slider.press("ArrowRight")
    qkv.wait_for_change(WQ01, 0.0)
    one = qkv.number(WQ01)
    assert 0 < one < 0.1
    slider.press("ArrowRight")
    qkv.wait_for_number(WQ01, 2 * one, 1e-9)
    assert float(slider.input_value()) == pytest.approx(2 * one)
    slider.press("End")
    qkv.wait_for_number(WQ01, 2.0)

    box = slider.bounding_box()
    assert box is not None
    y = box["y"] + box["height"] / 2
    qkv.page.mouse.move(box["x"] + box["width"] - 9, y)
    qkv.page.mouse.down()
    seen = set()
    for share in (0.8, 0.6, 0.5, 0.3, 0.25):
        qkv.page.mouse.move(box["x"] + share * box["width"], y, steps=3)
        qkv.wait_until_answered()
        seen.add(qkv.number(f"{ATTENTION}.q[0,2,1]"))
    qkv.page.mouse.up()
    qkv.wait_until_answered()
    assert len(seen) > 3, "the board follows while the thumb moves"
    assert qkv.number(WQ01) == pytest.approx(-1.0, abs=0.15)

    # the whole drag is one step of undo
    dragged = qkv.number(WQ01)
    qkv.leave_everything()
    qkv.press("Control+z")
    qkv.wait_for_number(WQ01, 2.0)
    qkv.press("Control+Shift+z")
    qkv.wait_for_number(WQ01, dragged)

    qkv.page.click(f".gb-editor button:has-text('{label('wider', 'en')}')")
    assert float(slider.get_attribute("max") or 0) == 4.0
    assert float(slider.get_attribute("min") or 0) == -4.0

    field = qkv.page.locator(NUMBER)
    field.fill("40")
    field.press("Enter")
    qkv.wait_for_number(WQ01, 40.0)
    assert float(slider.get_attribute("max") or 0) >= 40.0, "the range holds the value"
    field.fill("1,5")
    field.press("Enter")
    expect(qkv.page.locator(".gb-editor")).to_contain_text(label("comma", "en"), use_inner_text=True)
    expect(field).to_have_value("1,5")
    assert qkv.number(WQ01) == 40.0
    qkv.page.get_by_role("button", name=label("undo", "en")).first.click()
    qkv.page.wait_for_function("() => document.querySelector('.gb-editor .gb-number').value !== '1,5'")
    expect(field, "what was refused gives way to a value from elsewhere").to_have_attribute("aria-invalid", "false")
    field.fill("0.5")
    field.press("Enter")
    qkv.wait_for_number(WQ01, 0.5)
    qkv.page.click(f".gb-editor button[aria-label='{label('step_up', 'en')}']")
    qkv.wait_for_change(WQ01, 0.5)
    assert qkv.number(WQ01) > 0.5
    qkv.page.click(f".gb-editor button:has-text('{label('reset_cell', 'en')}')")
    qkv.wait_for_number(WQ01, 0.0)


def test_long_numbers_survive_the_short_field(qkv: Reader) -> None:
    """The field shows six digits; looking at it and leaving it changes none of the others."""
    value = 0.1234567890123456
    qkv.edit(WQ01, value)
    qkv.select(WQ01)
    field = qkv.page.locator(NUMBER)
    field.focus()
    field.press("Enter")
    qkv.focus(WQ12)
    cell_field = qkv.start_typing(WQ01)
    cell_field.press("Enter")
    qkv.edit(WQ12, 3.0)
    qkv.wait_for_edits({WQ01: value, WQ12: 3.0})
    assert qkv.number(WQ01) == value


def test_dragging_a_cell(qkv: Reader) -> None:
    """Sideways over a parameter cell the value follows the pointer; computed cells do not move."""
    drag(qkv, WQ01, 60)
    qkv.wait_for_change(WQ01, 0.0)
    far = qkv.number(WQ01)
    assert far == pytest.approx(60 * 4 / 200, abs=0.15)
    qkv.wait_for_edits({WQ01: far})
    qkv.wait_for_selection(WQ01)

    drag(qkv, WQ01, -30)
    qkv.wait_for_change(WQ01, far)
    assert qkv.number(WQ01) == pytest.approx(far - 0.6, abs=0.15)
    qkv.leave_everything()
    qkv.press("Control+z")
    qkv.wait_for_number(WQ01, far)
    qkv.press("Control+z")
    qkv.wait_for_number(WQ01, 0.0)

    computed = f"{ATTENTION}.q[0,2,1]"
    before = qkv.numbers()
    drag(qkv, computed, 60)
    drag(qkv, WQ01, 3)
    qkv.wait_for_selection(WQ01)
    assert qkv.numbers() == before
    qkv.wait_for_address(lacks="edits=")


def drag(reader: Reader, reference: str, pixels: float) -> None:
    cell = reader.cell(reference)
    cell.scroll_into_view_if_needed()
    box = cell.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    reader.page.mouse.move(x, y)
    reader.page.mouse.down()
    reader.page.mouse.move(x + pixels, y, steps=10)
    reader.page.mouse.up()
    reader.wait_until_answered()


def test_quick_edits_all_stay(qkv: Reader) -> None:
    """Edits that do not wait for one another: of each cell the newest value, and no cell forgotten."""
    for number, reference in enumerate((WQ01, WQ12, f"{WQ}[2,3]"), start=1):
        qkv.focus(reference)
        qkv.page.keyboard.type(f"{number}.5")
        qkv.press("Enter")
    expected = {WQ01: 1.5, WQ12: 2.5, f"{WQ}[2,3]": 3.5}
    for reference, value in expected.items():
        qkv.wait_for_number(reference, value)
    qkv.wait_until_answered()
    qkv.wait_for_edits(expected)
    expect(qkv.in_strip(".gb-edit-count")).to_contain_text("3", use_inner_text=True)

    # thirty presses of a key, faster than they can be answered
    qkv.select(WQ01)
    slider = qkv.page.locator(SLIDER)
    slider.focus()
    start = qkv.number(WQ01)
    for _ in range(30):
        qkv.press("ArrowLeft")
    qkv.wait_until_answered()
    qkv.page.wait_for_function(
        "([reference, start]) => Number(document.querySelector(`td[data-ref='${reference}']`).dataset.value) < start",
        arg=[WQ01, start - 0.25],
    )
    shown = float(slider.input_value())
    qkv.wait_for_number(WQ01, shown, 1e-9)
    qkv.wait_for_edits({**expected, WQ01: qkv.number(WQ01)})


def test_values_round_trip_through_the_address(qkv: Reader) -> None:
    """Every double comes back from the address to the last bit."""
    values = {
        WQ01: 0.1 + 0.2, WQ12: -1 / 3, f"{WQ}[2,3]": 5e-324, f"{WQ}[3,0]": 1.7976931348623157e308,
        f"{WQ}[0,0]": 1e-3, f"{WQ}[1,1]": 0.15,
    }
    for reference, value in values.items():
        qkv.edit(reference, value)
    qkv.wait_for_edits(values)
    before = qkv.numbers()
    address = qkv.page.url
    qkv.page.goto("about:blank")
    qkv.page.goto(address)
    qkv.wait_until_drawn()
    qkv.wait_for_edits(values)
    assert {reference: qkv.number(reference) for reference in values} == values
    assert repr(qkv.numbers()) == repr(before)
