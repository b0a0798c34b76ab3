"""A lesson before a class: step by step by keys or buttons, the board live, and back again."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.browser.support import ATTENTION, LANGUAGES, Reader, label

WQ01 = f"{ATTENTION}.Wq[0,1]"
PARTS = 5
SHOWN = """[...document.querySelectorAll(".st-key-prose h5, .gb-section, [data-testid=stPlotlyChart]")]
  .filter((node) => node.checkVisibility()).length"""


def shown(reader: Reader) -> int:
    """How many parts of the prose, sections of the board and charts are to be seen."""
    return int(reader.page.evaluate(SHOWN))


def place(reader: Reader) -> str:
    return reader.in_strip(".gb-step-place").inner_text()


def wait_for_place(reader: Reader, expected: str) -> None:
    reader.page.wait_for_function(
        "(text) => document.querySelector('.gb-step-place')?.innerText === text", arg=expected
    )


def sections(reader: Reader) -> int:
    return reader.page.locator(".gb-section").count()


@pytest.mark.parametrize("language", LANGUAGES)
def test_step_by_step(reader: Reader, language: str) -> None:
    """The title, the prose part by part, the board section by section, the next lesson; and back."""
    reader.open("qkv", lang=language)
    everything = shown(reader)
    reader.page.get_by_role("button", name=label("present", language), exact=True).click()
    reader.wait_for_address(has="present=1")
    wait_for_place(reader, f"0 / {everything}")
    assert everything == PARTS + sections(reader)
    expect(reader.in_strip(".gb-strip-steps")).to_contain_text(label("present_keys", language), use_inner_text=True)
    assert shown(reader) == 0
    expect(reader.page.locator("h1")).to_be_visible()
    # no sidebar, no downloads
    reader.page.wait_for_function("!document.querySelector('[data-testid=stSidebarNav], [data-testid=stExpander]')")
    expect(reader.page.locator('[data-testid="stSidebar"]:visible')).to_have_count(0)

    for step in range(1, everything + 1):
        reader.press("Space" if step % 2 else "ArrowRight")
        wait_for_place(reader, f"{step} / {everything}")
        assert shown(reader) == step
        last = reader.page.locator("[data-glassbox-shown]").last
        reader.page.wait_for_function(
            """(step) => { const box = step.getBoundingClientRect();
              return box.top < innerHeight && box.bottom > document.querySelector(".gb-strip").offsetHeight; }""",
            arg=last.element_handle(),
        )
    for key, step in (("ArrowLeft", everything - 1), ("Shift+Space", everything - 2), ("PageDown", everything - 1),
                      ("PageUp", everything - 2)):
        reader.press(key)
        wait_for_place(reader, f"{step} / {everything}")
        assert shown(reader) == step

    reader.press("Space", "Space", "ArrowRight")
    reader.arrive("rope", "rope.offset[]")
    reader.wait_for_address(has="present=1")
    reader.page.wait_for_function("document.querySelector('.gb-step-place').innerText.startsWith('0 /')")
    assert shown(reader) == 0
    # who comes back finds the lesson as it was left
    reader.press("ArrowLeft")
    reader.arrive("qkv", WQ01)
    wait_for_place(reader, f"{everything} / {everything}")
    assert shown(reader) == everything

    reader.press("Escape")
    reader.wait_for_address(lacks="present=")
    reader.page.wait_for_selector('[data-testid="stSidebarNav"]')
    reader.page.wait_for_function(f"{SHOWN} === {everything}")
    assert reader.in_strip(".gb-strip-steps").is_hidden()


def test_the_board_stays_live(reader: Reader) -> None:
    """Keys inside a grid belong to the grid; Escape leaves the panel, then the grid, then the presentation."""
    reader.open("qkv", present="1")
    for step in range(1, PARTS + 2):
        reader.press("Space")
        reader.page.wait_for_function(f"document.querySelector('.gb-step-place').innerText.startsWith('{step} /')")
    before = place(reader)
    reader.cell(WQ01).click()
    reader.wait_for_selection(WQ01)
    reader.press("ArrowRight", "ArrowLeft", "Space", "PageDown")
    assert reader.page.evaluate("document.activeElement.dataset.ref") == WQ01
    reader.page.keyboard.type("0.5")
    reader.press("Enter")
    reader.wait_for_number(WQ01, 0.5)
    assert f"{ATTENTION}.q[0,1,1]" in reader.marked("gb-changed")
    assert place(reader) == before

    reader.press("Escape")
    reader.page.wait_for_function("!location.search.includes('cell=')")
    reader.press("Escape")
    assert reader.page.evaluate("document.activeElement === document.body")
    assert "present=" in reader.page.url
    reader.press("ArrowRight")
    reader.page.wait_for_function(
        "(before) => document.querySelector('.gb-step-place').innerText !== before", arg=before
    )
    assert reader.number(WQ01) == 0.5

    # in a field they are what one types
    reader.in_strip(".gb-strip-sentence button").click()
    after = place(reader)
    reader.page.keyboard.type("sit on")
    assert place(reader) == after
    reader.press("Escape")
    assert "present=" in reader.page.url, "Escape left the field"
    reader.leave_everything()
    reader.press("Escape")
    reader.wait_for_address(lacks="present=")


def test_nothing_flashes_up_between_lessons(reader: Reader) -> None:
    """Not one frame shows a part of the next lesson, though its words come in the elements of the last one."""
    reader.open("qkv", present="1")
    for step in range(1, PARTS + 5):
        reader.press("Space")
        reader.page.wait_for_function(f"document.querySelector('.gb-step-place').innerText.startsWith('{step} /')")
    reader.page.evaluate("""() => {
      window.most = 0;
      const watch = () => {
        const parts = [...document.querySelectorAll(".st-key-prose h5, .gb-section")];
        window.most = Math.max(window.most, parts.filter((part) => part.checkVisibility()).length);
        requestAnimationFrame(watch);
      };
      document.addEventListener("keydown", () => requestAnimationFrame(watch), { once: true });
    }""")
    reader.press("Space")
    reader.arrive("rope", "rope.offset[]")
    reader.page.wait_for_timeout(300)
    assert reader.page.evaluate("window.most") == 0


def test_a_reload_and_another_layer_keep_the_place(reader: Reader) -> None:
    reader.open("qkv", present="1")
    reader.press("Space", "Space", "Space")
    reader.page.wait_for_function("document.querySelector('.gb-step-place').innerText.startsWith('3 /')")
    reader.in_strip(".gb-strip-more").click()
    reader.in_strip("select").first.select_option("1")
    reader.wait_until_drawn("layers.1.attention.Wq[0,0]")
    assert place(reader).startswith("3 /")
    assert shown(reader) == 3
    reader.wait_for_address(has="present=4")
    reader.page.reload()
    reader.wait_until_drawn()
    reader.page.wait_for_function("document.querySelector('.gb-step-place')?.innerText.startsWith('3 /')")
    assert shown(reader) == 3
    reader.press("ArrowLeft", "ArrowLeft", "ArrowLeft")
    reader.wait_for_address(has="present=1")


def test_words_lead_to_what_has_not_had_its_turn(reader: Reader) -> None:
    reader.open("scores", present="1")
    reader.press("Space", "Space")
    word = reader.page.locator('.st-key-prose a[href="#causal_mask"]')
    word.click()
    reader.page.wait_for_function("document.querySelector('.gb-lit')?.checkVisibility()")
    assert shown(reader) == PARTS + 2, "the mask stands in the board's second section"
    # the word has the focus, and the keys still lead on
    reader.press("ArrowRight")
    reader.page.wait_for_function(f"document.querySelector('.gb-step-place').innerText.startsWith('{PARTS + 3} /')")


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_motion(visit: Visit, motion: str) -> None:
    reader = visit(reduced_motion=motion)
    reader.open("qkv", present="1")
    reader.page.evaluate("""() => {
      window.behaviors = [];
      const scroll = Element.prototype.scrollIntoView;
      Element.prototype.scrollIntoView = function (given) {
        behaviors.push(given?.behavior);
        return scroll.call(this, given);
      };
    }""")
    reader.press("Space")
    reader.page.wait_for_function("window.behaviors.length > 0")
    name = reader.page.evaluate("getComputedStyle(document.querySelector('[data-glassbox-shown]')).animationName")
    seen = (reader.page.evaluate("window.behaviors[0]"), name)
    assert seen == (("instant", "none") if motion == "reduce" else ("smooth", "glassbox-appear"))


@pytest.mark.parametrize("language", LANGUAGES)
def test_on_a_phone(visit: Visit, language: str) -> None:
    """Without keys: buttons lead on and back and leave; nothing is wider than the screen."""
    phone = visit(viewport={"width": 390, "height": 844}, has_touch=True)
    phone.open("scores", lang=language, present="1")
    on = phone.in_strip(".gb-strip-steps").get_by_role("button", name=label("step_on", language))
    back = phone.in_strip(".gb-strip-steps").get_by_role("button", name=label("step_back", language))
    for step in range(1, PARTS + 3):
        on.tap()
        phone.page.wait_for_function(f"document.querySelector('.gb-step-place').innerText.startsWith('{step} /')")
        assert phone.page.evaluate("document.documentElement.scrollWidth") <= 390
        assert phone.page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= 390
    back.tap()
    phone.page.wait_for_function(f"document.querySelector('.gb-step-place').innerText.startsWith('{PARTS + 1} /')")
    assert phone.page.evaluate("document.querySelector('.gb-strip').offsetHeight") < 130
    phone.in_strip(".gb-strip-steps").get_by_role("button", name=label("present_leave", language)).tap()
    phone.wait_for_address(lacks="present=")
