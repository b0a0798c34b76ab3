"""The whole board without a pointer."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.browser.support import ATTENTION, Reader

WQ = f"{ATTENTION}.Wq"
FOCUSED = "document.activeElement.dataset.ref ?? null"


def focused(reader: Reader) -> str | None:
    return reader.page.evaluate(FOCUSED)


def tab_to_a_cell_of(reader: Reader, tensor: str) -> str:
    """Press Tab until a cell of the tensor has the focus."""
    for _ in range(150):
        reader.press("Tab")
        at = focused(reader)
        if at and at.startswith(f"{tensor}["):
            return at
    raise AssertionError(f"Tab never reached {tensor}")


def test_a_grid_by_keys(reader: Reader) -> None:
    """One tab stop a grid, arrows inside it, Enter edits or explains, E explains, Escape leaves."""
    reader.open("qkv")
    assert tab_to_a_cell_of(reader, WQ) == f"{WQ}[0,0]"
    reader.press("ArrowRight", "ArrowDown", "ArrowDown")
    assert focused(reader) == f"{WQ}[2,1]"
    reader.press("End")
    assert focused(reader) == f"{WQ}[2,3]"
    reader.press("ArrowRight", "ArrowDown", "ArrowDown")
    assert focused(reader) == f"{WQ}[3,3]", "at the edge the focus stays"
    reader.press("Home", "ArrowUp", "ArrowUp", "ArrowUp", "ArrowUp", "ArrowLeft")
    assert focused(reader) == f"{WQ}[0,0]"
    assert reader.page.evaluate("location.pathname") == "/qkv", "arrows in a grid leave the lesson alone"

    # the next tab stop is another grid; back again it is the cell that was left
    reader.press("ArrowRight", "Tab")
    assert not (focused(reader) or "").startswith(WQ)
    reader.press("Shift+Tab")
    assert focused(reader) == f"{WQ}[0,1]"

    # Enter edits a parameter, and the focus comes back to its cell
    reader.press("Enter")
    assert reader.page.evaluate("document.activeElement.className") == "gb-cell-field"
    reader.press("ArrowUp")
    reader.wait_for_change(f"{WQ}[0,1]", 0.0)
    reader.press("Enter")
    assert focused(reader) == f"{WQ}[0,1]"
    reader.wait_for_selection(f"{WQ}[0,1]")
    value = reader.number(f"{WQ}[0,1]")

    # undo and redo from the keyboard, also with a cell focused
    reader.press("Control+z")
    reader.wait_for_number(f"{WQ}[0,1]", 0.0)
    reader.press("Control+Shift+z")
    reader.wait_for_number(f"{WQ}[0,1]", value)
    reader.press("Control+z")
    reader.wait_for_number(f"{WQ}[0,1]", 0.0)
    reader.press("Control+y")
    reader.wait_for_number(f"{WQ}[0,1]", value)
    reader.press("Delete")
    reader.wait_for_number(f"{WQ}[0,1]", 0.0)

    # E explains a parameter, Enter a computed cell
    reader.press("ArrowRight", "e")
    reader.wait_for_selection(f"{WQ}[0,2]")
    expect(reader.page.locator(".gb-cell-field")).to_have_count(0)
    tab_to_a_cell_of(reader, f"{ATTENTION}.q")
    reader.press("ArrowDown", "Enter")
    reader.wait_for_selection(f"{ATTENTION}.q[0,1,0]")
    assert "q[sit, c0] = " in reader.formula()
    expect(reader.page.locator(".gb-cell-field")).to_have_count(0)

    # F2 overrides the computed cell; Escape closes the panel, and the focus is not lost
    reader.press("F2")
    reader.page.keyboard.press("Control+A")
    reader.page.keyboard.type("2.5")
    reader.press("Enter")
    reader.wait_for_number(f"{ATTENTION}.q[0,1,0]", 2.5)
    reader.press("Escape")
    reader.page.wait_for_function("!location.search.includes('cell=')")
    assert reader.page.locator(".gb-dock").is_hidden()
    assert focused(reader) == f"{ATTENTION}.q[0,1,0]"


def test_lessons_by_arrow_keys(reader: Reader) -> None:
    """← and → change the lesson when nothing has the focus, and only then."""
    reader.open("qkv")
    reader.leave_everything()
    reader.press("ArrowRight")
    reader.arrive("rope", "rope.offset[]")
    reader.press("ArrowRight")
    reader.arrive("scores", "causal_mask[0,0]")
    reader.press("ArrowLeft")
    reader.arrive("rope", "rope.offset[]")
    reader.press("ArrowLeft")
    reader.arrive("qkv", f"{WQ}[0,0]")

    # on a control they mean what they mean to the control
    reader.in_strip("select").first.focus()
    reader.press("ArrowRight")
    second = "layers.1.attention.Wq[0,1]"
    reader.wait_until_drawn(second)
    reader.in_strip(".gb-modes input:checked").focus()
    reader.press("ArrowRight")
    reader.wait_for_address(has="mode=delta")
    reader.in_strip(".gb-strip-lessons button").first.focus()
    reader.press("ArrowRight", "ArrowLeft")
    reader.select(second)
    reader.page.locator(".gb-editor .gb-slider").focus()
    reader.press("ArrowRight")
    reader.wait_for_change(second, 0.0)
    reader.page.locator(".gb-editor .gb-number").focus()
    reader.press("ArrowLeft", "ArrowRight")
    reader.in_strip(".gb-strip-sentence button").click()
    reader.press("ArrowRight", "ArrowLeft", "Escape")
    reader.wait_until_answered()
    assert reader.page.evaluate("location.pathname") == "/qkv"

    # a lesson in either direction ends at the ends
    reader.open("overview")
    reader.leave_everything()
    reader.press("ArrowLeft")
    reader.press("ArrowRight")
    reader.arrive("embedding", "embedding.weight[0,0]")


def test_pictures_and_sections_by_keys(reader: Reader) -> None:
    """A block of the data-flow picture is a button that leads to its lesson."""
    reader.open()
    block = reader.page.locator(".gb-flow button.gb-flow-title", has_text="MLP").first
    block.focus()
    reader.press("Enter")
    reader.arrive("mlp", "layers.0.mlp.W_up[0,0]")


def test_reduced_motion(visit: Visit) -> None:
    """A selected cell is brought into view smoothly, except for readers who asked for stillness."""
    seen = {}
    for motion in ("reduce", "no-preference"):
        reader = visit(reduced_motion=motion)
        reader.page.add_init_script("""
          window.behaviors = [];
          const scroll = Element.prototype.scrollIntoView;
          Element.prototype.scrollIntoView = function (given) {
            behaviors.push(given?.behavior);
            return scroll.call(this, given);
          };
        """)
        reader.open("qkv")
        reader.select(f"{WQ}[0,1]")
        reader.page.wait_for_function("window.behaviors.length > 0")
        seen[motion] = reader.page.evaluate("window.behaviors.at(-1)")
    assert seen == {"reduce": "instant", "no-preference": "smooth"}
