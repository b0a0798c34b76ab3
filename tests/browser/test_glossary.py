"""The glossary, and words of the prose that light up their tensor."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.browser.support import ATTENTION, LANGUAGES, Reader, label, lesson_title

TERMS = ".gb-terms tr:visible"
LIT = """[...document.querySelectorAll(".gb-lit")]
  .map((node) => node.querySelector("table")?.getAttribute("aria-label") ?? node.dataset.ref)"""


def open_glossary(reader: Reader, language: str) -> None:
    reader.page.goto(f"{reader.url}/glossary?lang={language}")
    reader.page.wait_for_selector(".gb-terms")


@pytest.mark.parametrize("language", LANGUAGES)
def test_finding_a_term(reader: Reader, language: str) -> None:
    """By either name or by its explanation; the link leads to the lesson with everything kept."""
    open_glossary(reader, language)
    everything = reader.page.locator(TERMS).count()
    assert everything > 50
    field = reader.page.get_by_label(label("find_term", language))
    for wanted in ("KV cache", "kv 缓存"):
        field.fill(wanted)
        expect(reader.page.locator(TERMS)).to_have_count(1)
        names = reader.page.locator(f"{TERMS} th, {TERMS} .gb-translation").all_inner_texts()
        assert sorted(names) == ["KV cache", "KV 缓存（KV cache）"]
    field.fill("zzz")
    expect(reader.page.locator(TERMS)).to_have_count(0)
    expect(reader.page.locator(".gb-glossary output")).to_have_text(label("no_term", language), use_inner_text=True)
    field.fill("")
    expect(reader.page.locator(TERMS)).to_have_count(everything)
    first = reader.page.locator(f"{TERMS} th").first.inner_text()
    assert any("\u4e00" <= letter <= "\u9fff" for letter in first) == (language == "zh"), "the reader's language first"

    field.fill("softmax")
    link = reader.page.locator(f"{TERMS} a", has_text=lesson_title("scores", language)).first
    link.focus()
    expect(link).to_have_attribute("href", f"./scores?lang={language}")
    link.click()
    reader.arrive("scores", f"{ATTENTION}.scores[0,0,0,0]")


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_lesson_leads_to_the_glossary(reader: Reader, language: str) -> None:
    reader.open("scores", lang=language)
    reader.edit(f"{ATTENTION}.Wq[0,1]", 0.5)
    reader.page.locator(".st-key-prose").get_by_role("link", name=label("glossary", language)).click()
    reader.page.wait_for_selector(".gb-terms")
    expect(reader.page.locator("h1")).to_have_text(label("glossary", language), use_inner_text=True)
    last = reader.page.locator('[data-testid="stSidebarNavLink"]').last
    assert last.inner_text().strip() == label("glossary", language)
    reader.wait_for_address(has="edits=")
    reader.page.locator(".gb-terms a", has_text=lesson_title("overview", language)).first.click()
    reader.arrive("overview", "logits[0,2,90]")
    expect(reader.in_strip(".gb-edit-count")).to_have_text(label("edits", language).format(n=1), use_inner_text=True)


def test_the_language_can_be_changed_in_the_glossary(reader: Reader) -> None:
    open_glossary(reader, "en")
    reader.in_strip(".gb-strip-lessons button").click()
    title = label("glossary", "zh")
    reader.page.wait_for_function("(title) => document.querySelector('h1').innerText === title", arg=title)
    reader.page.wait_for_function("document.querySelector('.gb-terms th').innerText === '张量'")


def test_on_a_phone(visit: Visit) -> None:
    phone = visit(viewport={"width": 390, "height": 844}, has_touch=True)
    open_glossary(phone, "zh")
    assert phone.page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= 390
    term = phone.page.locator(".gb-terms tr").nth(3).bounding_box()
    assert term is not None
    assert term["width"] <= 390


def lit(reader: Reader) -> list[str]:
    found: list[str] = reader.page.evaluate(LIT)
    return found


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_word_lights_up_its_tensor(reader: Reader, language: str) -> None:
    """By pointer, by key, and by a click that leads there."""
    reader.open("scores", lang=language)
    word = reader.page.locator('.st-key-prose a[href="#scores"]')
    assert "dotted" in word.evaluate("(word) => getComputedStyle(word).textDecoration")
    word.hover()
    assert [name.split(",")[0] for name in lit(reader)] == ["scores", "scores"], "wherever it stands"
    reader.page.mouse.move(1, 1)
    assert lit(reader) == []
    word.focus()
    assert len(lit(reader)) == 2
    reader.leave_everything()
    assert lit(reader) == []

    word.focus()
    reader.press("Enter")
    reader.page.wait_for_function("""() => { const box = document.querySelector(".gb-lit").getBoundingClientRect();
      return box.top > document.querySelector(".gb-strip").offsetHeight && box.bottom < innerHeight; }""")
    assert len(lit(reader)) == 2, "the light stays with the focus"
    assert "#" not in reader.page.url


def test_a_word_for_several_and_for_what_enters_the_layer(reader: Reader) -> None:
    reader.open("residual")
    word = reader.page.locator('.st-key-prose a[href="#input"]')
    word.focus()
    assert [name.split(",")[0] for name in lit(reader)] == [label("stream_in", "en").split(",")[0]]
    reader.in_strip("select").first.select_option("1")
    reader.wait_until_drawn("layers.1.residual1[0,0,0]")
    word.focus()
    assert [name.split(",")[0] for name in lit(reader)] == [label("stream_in", "en").split(",")[0]]
    reader.page.locator('.st-key-prose a[href="#output"]').focus()
    assert [name.split(",")[0] for name in lit(reader)] == [label("stream_out", "en").split(",")[0]]
    reader.open("qkv")
    reader.page.locator('.st-key-prose a[href="#Wq,Wk,Wv"]').focus()
    assert [name.split(",")[0] for name in lit(reader)] == ["Wq", "Wk", "Wv"]


def test_rows_of_a_grid_of_several_tensors(reader: Reader) -> None:
    reader.open("layers")
    reader.page.locator('.st-key-prose a[href="#layers.0.residual1"]').focus()
    assert lit(reader) == [f"layers.0.residual1[0,2,{feature}]" for feature in range(4)]


def test_a_word_without_its_tensor_does_no_harm(reader: Reader) -> None:
    """Another architecture has no such grid; nothing lights up, and a click changes nothing."""
    reader.open("scores", arch="causal-off")
    word = reader.page.locator('.st-key-prose a[href="#causal_mask"]')
    word.click()
    assert lit(reader) == []
    assert "#" not in reader.page.url


def test_a_word_under_a_finger(visit: Visit) -> None:
    phone = visit(viewport={"width": 390, "height": 844}, has_touch=True)
    phone.open("scores")
    phone.page.locator('.st-key-prose a[href="#weights"]').tap()
    phone.page.wait_for_function("""() => { const box = document.querySelector(".gb-lit")?.getBoundingClientRect();
      return box && box.top > 0 && box.bottom < innerHeight; }""")
    phone.cell(f"{ATTENTION}.weights[0,0,0,0]").tap()
    assert lit(phone) == []
