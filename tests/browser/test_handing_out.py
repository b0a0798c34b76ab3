"""A link for a class: what it hides is gone and does nothing, and a camera can read it."""

from __future__ import annotations

import io

import pytest
import zxingcpp
from PIL import Image
from playwright.sync_api import expect

from engine import Edit
from formats import edits as edit_links
from tests.browser.conftest import Visit
from tests.browser.support import ATTENTION, LANGUAGES, Reader, label

WQ01 = f"{ATTENTION}.Wq[0,1]"


def open_panel(reader: Reader, language: str = "en") -> None:
    reader.page.get_by_role("button", name=label("hand_out", language), exact=True).click()
    reader.page.locator(".gb-hand-out[open]").wait_for()


def tick(reader: Reader, *keys: str, language: str = "en") -> None:
    for key in keys:
        reader.page.get_by_role("checkbox", name=label(key, language), exact=True).check()


def link(reader: Reader) -> str:
    return reader.page.locator(".gb-hand-out-link input").input_value()


def wait_for_link(reader: Reader, ending: str) -> str:
    reader.page.wait_for_function(
        "(ending) => document.querySelector('.gb-hand-out-link input').value.endsWith(ending)", arg=ending
    )
    return link(reader)


def scanned(reader: Reader) -> list[str]:
    """What a camera reads on the screen."""
    return [code.text for code in zxingcpp.read_barcodes(Image.open(io.BytesIO(reader.page.screenshot())))]


@pytest.mark.parametrize(("scheme", "language"), [("dark", "en"), ("light", "zh")])
def test_a_camera_reads_the_link(visit: Visit, scheme: str, language: str) -> None:
    """The code on the screen is the link in the field, in dark as in light; the link opens the experiment."""
    teacher = visit(color_scheme=scheme)
    teacher.open("scores", lang=language)
    teacher.edit(WQ01, 0.5)
    open_panel(teacher, language)
    before = link(teacher)
    assert before.startswith(f"{teacher.url}/scores?lang={language}&edits=")
    assert scanned(teacher) == [before]
    expect(teacher.page.locator(".gb-hand-out")).to_contain_text(label("local_link", language), use_inner_text=True)
    tick(teacher, "hand_out_present", "hide_lessons", "hide_downloads", language=language)
    teacher.page.wait_for_function(
        "document.querySelector('.gb-hand-out-link input').value.includes('&present=1&hide=lessons.downloads&')"
    )
    made = link(teacher)
    teacher.page.wait_for_function("document.querySelector('.gb-code').complete")
    assert scanned(teacher) == [made]
    teacher.page.keyboard.press("Escape")
    teacher.page.wait_for_function("!document.querySelector('.gb-hand-out[open]')")
    assert "hide=" not in teacher.page.url, "the teacher's own page stays as it is"

    student = visit()
    student.visit(made.removeprefix(teacher.url))
    assert student.number(WQ01) == 0.5
    assert student.in_strip(".gb-step-place").inner_text().startswith("0 /")
    expect(student.page.locator('[data-testid="stSidebarNav"]')).to_have_count(0)


def test_copying(visit: Visit) -> None:
    reader = visit(permissions=["clipboard-read", "clipboard-write"])
    reader.open("qkv")
    open_panel(reader)
    reader.page.get_by_role("button", name=label("copy_link", "en")).click()
    reader.page.get_by_role("button", name=label("copied", "en")).wait_for()
    assert reader.page.evaluate("navigator.clipboard.readText()") == link(reader) == f"{reader.url}/qkv?lang=en"


def test_copying_without_a_clipboard(visit: Visit) -> None:
    """As over plain http in a school's network: the old command copies what is selected, which is the link."""
    reader = visit()
    reader.page.add_init_script("""
      Object.defineProperty(navigator, "clipboard", { value: undefined });
      document.addEventListener("copy", () => {
        const field = document.activeElement;
        window.copied = field.value.slice(field.selectionStart, field.selectionEnd);
      });
    """)
    reader.open("qkv")
    open_panel(reader)
    reader.page.get_by_role("button", name=label("copy_link", "en")).click()
    reader.page.get_by_role("button", name=label("copied", "en")).wait_for()
    assert reader.page.evaluate("window.copied") == link(reader)


def test_a_link_too_long_for_a_code(reader: Reader) -> None:
    """It is said; the link itself can still be copied, and a shorter one gets its code again."""
    edits = [Edit("embedding.weight", (row, feature), 1 / (3 + row + 7 * feature)) for row in range(65)
             for feature in range(4)]
    reader.open("qkv", edits=edit_links.encode(edits))
    open_panel(reader)
    assert reader.page.locator(".gb-code").is_hidden()
    expect(reader.page.locator(".gb-hand-out")).to_contain_text(label("code_too_long", "en"), use_inner_text=True)
    assert len(link(reader)) > 2953
    reader.press("Escape")
    reader.page.wait_for_function("!document.querySelector('.gb-hand-out[open]')")
    reader.page.get_by_role("button", name=label("reset_all", "en")).click()
    reader.wait_for_edits({})
    open_panel(reader)
    expect(reader.page.locator(".gb-code")).to_be_visible()
    expect(reader.page.locator(".gb-hand-out")).not_to_contain_text(label("code_too_long", "en"), use_inner_text=True)


def test_one_slider_is_left(reader: Reader) -> None:
    """The board with the lesson's slider alone: nothing else on the page can be used."""
    reader.page.goto(
        f"{reader.url}/rope?lang=en&hide=lessons.model.prose.chart.downloads.strip.editing.explanation"
    )
    reader.page.wait_for_selector(".gb-board td[data-value]")
    page = reader.page
    for gone in ('[data-testid="stSidebarNav"]', '[data-testid="stSidebar"] [data-testid="stSelectbox"]',
                 ".st-key-prose h5", '[data-testid="stPlotlyChart"]', '[data-testid="stExpander"]',
                 '[data-testid="stLogoLink"]', ".gb-strip button:visible", ".gb-strip .gb-token:visible"):
        expect(page.locator(gone), gone).to_have_count(0)
    expect(page.locator("h1")).to_have_text("RoPE", use_inner_text=True)

    offset = "rope.offset[]"
    reader.focus(offset)
    reader.press("Enter", "5", "Enter", "F2", "Delete")
    expect(page.locator(".gb-cell-field")).to_have_count(0)
    reader.cell(offset).dblclick()
    expect(page.locator(".gb-cell-field")).to_have_count(0)
    assert page.locator(".gb-dock").is_hidden()
    reader.leave_everything()
    reader.press("ArrowRight", "ArrowLeft")
    slider = page.locator(".gb-control .gb-slider")
    slider.focus()
    reader.press("ArrowRight", "ArrowRight")
    reader.wait_for_number(offset, 2.0)
    assert reader.number("rope.shifted[0]") == 2.0
    # nor by the keys of what is hidden
    reader.leave_everything()
    reader.press("Control+z")
    page.wait_for_timeout(300)
    assert reader.number(offset) == 2.0
    assert page.evaluate("location.pathname") == "/rope"
    assert page.evaluate("location.search").startswith("?lang=en&hide=lessons.model.prose.chart.downloads.strip.")


def test_without_sliders_the_cells_remain(reader: Reader) -> None:
    reader.open("rope", hide="controls.prediction")
    expect(reader.page.locator(".gb-board .gb-control")).to_have_count(0)
    assert reader.in_strip(".gb-strip-prediction").is_hidden()
    reader.edit("rope.offset[]", 2.0)
    assert reader.number("rope.shifted[0]") == 2.0


def test_an_unknown_name_is_a_broken_link(reader: Reader) -> None:
    reader.open("rope", hide="everything")
    assert label("broken_link", "en").split("{")[0].strip() in (reader.message() or "")
    expect(reader.page.locator('[data-testid="stSidebarNav"]')).to_have_count(1)


@pytest.mark.parametrize("language", LANGUAGES)
def test_on_a_phone(visit: Visit, language: str) -> None:
    phone = visit(viewport={"width": 390, "height": 844}, has_touch=True, color_scheme="dark", device_scale_factor=2)
    phone.open("scores", lang=language)
    phone.in_strip(".gb-strip-more").tap()
    open_panel(phone, language)
    assert phone.page.locator(".gb-hand-out").evaluate(
        "(panel) => panel.scrollWidth <= panel.clientWidth && panel.getBoundingClientRect().right <= innerWidth"
    )
    assert scanned(phone) == [link(phone)]
    phone.page.get_by_role("button", name=label("close", language)).first.tap()
    phone.page.wait_for_function("!document.querySelector('.gb-hand-out[open]')")
