"""A phone: 390 pixels wide, a finger instead of a pointer."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.browser.support import ATTENTION, LESSONS, Json, Reader, label

WQ01 = f"{ATTENTION}.Wq[0,1]"
PHONE = ("Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 (KHTML, like Gecko) "
         "Chrome/130.0.0.0 Mobile Safari/537.36")
SCROLLED = "document.querySelector('[data-testid=stMain]').scrollTop"


@pytest.fixture
def phone(visit: Visit) -> Reader:
    # Streamlit folds the sidebar away after a choice where the browser says that it is a phone's
    return visit(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True, device_scale_factor=2,
                 user_agent=PHONE)


def box(reader: Reader, selector: str) -> Json:
    return dict(reader.page.locator(selector).first.evaluate("(node) => node.getBoundingClientRect().toJSON()"))


def overlap(one: Json, other: Json) -> bool:
    return bool(
        min(one["right"], other["right"]) - max(one["left"], other["left"]) > 0.5
        and min(one["bottom"], other["bottom"]) - max(one["top"], other["top"]) > 0.5
    )


def swipe(reader: Reader, reference: str, x: float, y: float) -> None:
    """A finger that starts on a cell and moves."""
    cell = reader.cell(reference)
    cell.scroll_into_view_if_needed()
    at = cell.bounding_box()
    assert at is not None
    client = reader.context.new_cdp_session(reader.page)
    start_x, start_y = at["x"] + at["width"] / 2, at["y"] + at["height"] / 2
    steps = [{"x": start_x + x * step / 10, "y": start_y + y * step / 10} for step in range(11)]
    client.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [steps[0]]})
    for step in steps[1:]:
        client.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [step]})
        reader.page.evaluate("() => new Promise(requestAnimationFrame)")
    client.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def test_tap_selects_and_the_slider_edits(phone: Reader) -> None:
    """What hover and drag are to a mouse: tap for marks and explanation, then the slider."""
    phone.open("qkv")
    phone.cell(WQ01).scroll_into_view_if_needed()
    phone.cell(WQ01).tap()
    phone.wait_for_selection(WQ01)
    assert phone.marked("feeds"), "a tap shows what the cell feeds"
    dock = phone.page.locator(".gb-dock")
    dock.wait_for()
    # the panel does not lie over the cell that it speaks about, nor outside the screen
    phone.page.wait_for_function(
        """(reference) => {
          const cell = document.querySelector(`td[data-ref="${reference}"]`).getBoundingClientRect();
          const dock = document.querySelector(".gb-dock").getBoundingClientRect();
          const strip = document.querySelector(".gb-strip").getBoundingClientRect();
          return cell.bottom <= dock.top + 1 && cell.top >= strip.bottom - 1
            && dock.bottom <= innerHeight + 1 && dock.width <= innerWidth;
        }""",
        arg=WQ01,
    )

    slider = phone.page.locator(".gb-editor .gb-slider")
    at = slider.bounding_box()
    assert at is not None
    assert at["width"] > 120, "wide enough for a thumb"
    phone.page.touchscreen.tap(at["x"] + 0.75 * at["width"], at["y"] + at["height"] / 2)
    phone.wait_for_change(WQ01, 0.0)
    phone.wait_until_answered()
    assert phone.number(WQ01) == pytest.approx(1.0, abs=0.25)
    assert f"{ATTENTION}.q[0,2,1]" in phone.marked("gb-changed")

    field = phone.page.locator(".gb-editor .gb-number")
    assert float(field.evaluate("(node) => parseFloat(getComputedStyle(node).fontSize)")) >= 16, "or the phone zooms in"
    field.tap()
    field.fill("1,5")
    field.press("Enter")
    expect(phone.page.locator(".gb-editor")).to_contain_text(label("comma", "en"), use_inner_text=True)
    field.fill("-0.5")
    field.press("Enter")
    phone.wait_for_number(WQ01, -0.5)
    phone.page.locator(".gb-dock > .gb-close").tap()
    phone.wait_for_address(lacks="cell=")
    dock.wait_for(state="hidden")

    # a computed cell: its formula, with operands to tap
    phone.cell(f"{ATTENTION}.q[0,2,1]").tap()
    phone.wait_for_selection(f"{ATTENTION}.q[0,2,1]")
    phone.page.locator(".gb-formula .gb-operand").first.tap()
    phone.wait_for_selection("layers.0.norm1.output[0,2,0]")
    phone.page.locator(".gb-trail button").first.tap()
    phone.wait_for_selection(f"{ATTENTION}.q[0,2,1]")


def test_a_finger_scrolls_and_never_edits(phone: Reader) -> None:
    """A swipe over an editable cell scrolls the page, or a wide grid sideways; no number changes."""
    phone.open("mlp")
    before = phone.numbers()
    cell = "layers.0.mlp.W_up[1,1]"
    phone.cell(cell).scroll_into_view_if_needed()
    start = phone.page.evaluate(SCROLLED)
    swipe(phone, cell, 0, -200)
    phone.page.wait_for_function(f"{SCROLLED} > {start + 80}")
    swipe(phone, cell, -120, 0)
    phone.page.wait_for_function(
        "(cell) => document.querySelector(`td[data-ref='${cell}']`).closest('.gb-scroller').scrollLeft > 50", arg=cell
    )
    phone.wait_until_answered()
    assert phone.numbers() == before
    phone.wait_for_address(lacks="edits=")
    assert phone.page.evaluate("document.querySelector('[data-testid=stMain]').scrollLeft + scrollX") == 0


def test_strip_and_navigation(phone: Reader) -> None:
    """The strip is low, stays in sight, and leaves the sidebar's button alone; everything of it is behind ⋯."""
    phone.open("scores")
    strip, burger = ".gb-strip", '[data-testid="stExpandSidebarButton"]'
    assert not overlap(box(phone, strip), box(phone, burger))
    assert box(phone, strip)["height"] < 100
    assert box(phone, strip)["right"] <= 390
    expect(phone.in_strip(".gb-top")).to_have_text("mats 0.9073", use_inner_text=True)
    phone.page.evaluate("document.querySelector('[data-testid=stMain]').scrollTo(0, 1500)")
    phone.page.wait_for_function(f"{SCROLLED} > 1000")
    assert not overlap(box(phone, strip), box(phone, burger))
    assert 0 <= box(phone, strip)["top"] < 120

    more = phone.in_strip(".gb-strip-more")
    expect(more).to_have_attribute("aria-expanded", "false")
    assert phone.in_strip(".gb-modes").is_hidden()
    more.tap()
    expect(more).to_have_attribute("aria-expanded", "true")
    for part in (".gb-modes", ".gb-strip-history button", "select", ".gb-menu summary", ".gb-strip-lessons button"):
        expect(phone.in_strip(part).first).to_be_visible()
        assert box(phone, f".gb-strip {part}")["right"] <= 390
    phone.press("Escape")
    expect(more).to_have_attribute("aria-expanded", "false")
    expect(more).to_be_focused()
    more.tap()
    phone.focus(f"{ATTENTION}.scores[0,0,2,1]")
    phone.press("e")
    expect(more).to_have_attribute("aria-expanded", "false")
    more.tap()
    phone.page.locator(".gb-dock > .gb-close").tap()
    expect(more).to_have_attribute("aria-expanded", "false")
    more.tap()
    phone.in_strip(".gb-mode").nth(1).tap()
    phone.wait_for_address(has="mode=delta")
    phone.in_strip(".gb-menu summary").tap()
    panel = box(phone, ".gb-strip .gb-menu-panel")
    assert panel["left"] >= 0
    assert panel["right"] <= 390
    phone.in_strip(".gb-menu summary").tap()
    phone.in_strip(".gb-strip-lessons button").nth(1).tap()
    phone.arrive("values", f"{ATTENTION}.Wo[0,0]")

    phone.page.locator(burger).tap()
    link = phone.page.locator(f'[data-testid="stSidebarNav"] a[href="{phone.url}/embedding"]')
    link.tap()
    phone.arrive("embedding", "embedding.weight[12,0]")
    phone.write_sentence("on dog")
    assert "dog" in phone.wait_for_text(".gb-strip .gb-refusal-inline", "dog")
    assert box(phone, ".gb-strip")["right"] <= 390
    phone.write_sentence("on sit")
    phone.wait_for_tokens("on 78", "sit 45")


def test_no_lesson_is_wider_than_the_phone(phone: Reader) -> None:
    """Every lesson with the scratch model, whose grids are wider: the page itself never scrolls sideways."""
    wide = {}
    for lesson in LESSONS:
        phone.open(lesson, preset="scratch", cell="layers.1.output~0.4.7")
        phone.page.locator(".gb-dock").wait_for()
        wide[lesson] = phone.page.evaluate("""() => {
          const parts = [document.scrollingElement, document.querySelector('[data-testid="stMain"]')];
          return parts.some((part) => part.scrollWidth > part.clientWidth);
        }""")
    assert not any(wide.values()), wide
