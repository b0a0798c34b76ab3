"""Other sentences: words, ids, one token, thirty-two, and everything that is no sentence."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.support import ATTENTION, Reader

MANY = " ".join(["cats sit on mats"] * 8)
DENSE = f"{ATTENTION}.weights"


def test_sentences(reader: Reader) -> None:
    """Words in any case, ids, repeated tokens, a single token; edits stay."""
    reader.open("embedding")
    reader.edit("embedding.weight[45,1]", 0.75)

    reader.write_sentence("SIT sit 78 mats")
    reader.wait_for_tokens("sit 45", "sit 45", "on 78", "mats 90")
    reader.wait_until_drawn("embedding.output[0,3,0]")
    reader.wait_for_address(has="text=sit+sit+on+mats")
    assert reader.number("embedding.output[0,0,1]") == reader.number("embedding.output[0,1,1]") == 0.75
    assert [reader.number(f"embedding.output[0,3,{c}]") for c in range(4)] == [0.0] * 4
    reader.wait_for_edits({"embedding.weight[45,1]": 0.75})
    assert "gb-used" in (reader.cell("embedding.weight[90,0]").locator("xpath=..").get_attribute("class") or "")

    # repeated tokens are told apart by their position
    reader.select("embedding.output[0,1,1]")
    assert reader.formula().startswith("embedding.output[1:sit, c1] = ")
    reader.go("scores", f"{ATTENTION}.scores[0,0,3,0]")
    assert len(reader.numbers(f"{ATTENTION}.scores")) == 16
    rows = [sum(reader.number(f"{ATTENTION}.weights[0,0,{q},{k}]") for k in range(4)) for q in range(4)]
    assert rows == pytest.approx([1.0] * 4)

    # a selected cell that the shorter sentence has no place for is let go, an edit there only sleeps
    reader.edit(f"{ATTENTION}.scores[0,0,3,0]", 2.0)
    reader.write_sentence("on")
    reader.wait_for_tokens("on 78")
    reader.wait_until_drawn(f"{ATTENTION}.weights[0,0,0,0]")
    assert reader.number(f"{ATTENTION}.weights[0,0,0,0]") == 1.0
    assert len(reader.numbers(f"{ATTENTION}.scores")) == 1
    reader.wait_for_address(lacks="cell=")
    reader.wait_for_edits({"embedding.weight[45,1]": 0.75, f"{ATTENTION}.scores[0,0,3,0]": 2.0})
    reader.write_sentence("[12, 45; 255,7]")
    reader.wait_for_tokens("Cats 12", "sit 45", "#255 255", "#7 7")
    reader.wait_for_number(f"{ATTENTION}.scores[0,0,3,0]", 2.0)

    reader.write_sentence("Cats sit on")
    reader.wait_for_tokens("Cats 12", "sit 45", "on 78")
    reader.wait_for_address(lacks="text=")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_what_is_no_sentence(reader: Reader, language: str) -> None:
    """The message says which word or id and what is allowed, in the reader's language; the last sentence stays."""
    reader.open("embedding", lang=language, text="sit on")
    before, query = reader.numbers(), reader.query
    for text, expected in {
        "Cats dog": ("dog", "Cats", "volcano", "255"), "Cats 256": ("256", "255"), "-1": ("-1",), "1.5": ("1.5",),
        "": (), "   ": (), " ".join(["on"] * 33): ("33", "32"), "<b>sit</b>": ("<b>sit</b>",),
        "99999999999999999999": ("9999999999", "255"),
    }.items():
        reader.write_sentence(text)
        field = reader.in_strip(".gb-sentence-form input")
        error = reader.wait_for_text(".gb-strip .gb-refusal-inline", re.escape(expected[0]) if expected else "\\S")
        for part in expected:
            assert part in error
        assert any("\u4e00" <= letter <= "\u9fff" for letter in error) is (language == "zh")
        expect(field).to_have_value(text)
        assert reader.numbers() == before
        reader.wait_for_query(query)
        reader.press("Escape")
        assert reader.tokens == ["sit 45", "on 78"]
        reader.page.wait_for_function("!document.querySelector('.gb-strip .gb-refusal-inline')?.textContent")

    # a refused one can be mended on the spot
    reader.write_sentence("cats dgo")
    reader.wait_for_text(".gb-strip .gb-refusal-inline", "dgo")
    reader.write_sentence("cats on")
    reader.wait_for_tokens("Cats 12", "on 78")


def test_thirty_two_tokens(reader: Reader) -> None:
    """Large grids are shades in a window of their own; the number is in the tooltip, the read-out, and explained."""
    reader.open("scores")
    reader.write_sentence(MANY)
    reader.wait_until_drawn(f"{DENSE}[0,0,31,31]")
    assert len(reader.tokens) == 32
    weights = reader.numbers(f"{DENSE}[")
    assert len(weights) == 32 * 32
    for query in range(32):
        row = [weights[f"{DENSE}[0,0,{query},{key}]"] for key in range(32)]
        assert sum(row) == pytest.approx(1.0)
        assert row[query + 1:] == [0.0] * (31 - query)

    cell = reader.cell(f"{DENSE}[0,0,31,5]")
    expect(cell).to_have_text("", use_inner_text=True)
    title = cell.get_attribute("title") or ""
    assert f"{DENSE}[0,0,31,5]" in title
    assert str(weights[f"{DENSE}[0,0,31,5]"])[:12] in title
    cell.hover()
    figure = cell.locator("xpath=ancestor::figure")
    readout = figure.locator(".gb-readout").inner_text()
    assert readout.startswith("query mats 31, key sit 5 = ")
    assert float(readout.partition(" = ")[2]) == pytest.approx(weights[f"{DENSE}[0,0,31,5]"], abs=0.000051)
    window = figure.locator(".gb-scroller").evaluate("(node) => [node.clientHeight, node.clientWidth, innerWidth]")
    assert window[0] < 700
    assert window[1] <= window[2]
    assert reader.page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth <= innerWidth")

    # keys move in it, and its cells explain and change as small ones do
    reader.focus(f"{DENSE}[0,0,30,30]")
    reader.press("ArrowRight", "ArrowDown", "Enter")
    reader.wait_for_selection(f"{DENSE}[0,0,31,31]")
    assert "31:mats, 31:mats] = " in reader.formula()
    reader.select(f"{ATTENTION}.weights.sum[0,0,31]")
    more = reader.page.locator(".gb-formula .gb-button")
    assert reader.page.locator(".gb-operand").count() <= 25
    more.click()
    expect(reader.page.locator(".gb-operand")).to_have_count(32)
    reader.edit(f"{ATTENTION}.Wq[0,1]", 0.5)
    assert reader.numbers(f"{DENSE}[") != weights
    changed = reader.marked("gb-changed")
    assert f"{DENSE}[0,0,30,5]" in changed
    assert f"{DENSE}[0,0,0,0]" not in changed


def test_rows_of_the_large_table(reader: Reader) -> None:
    """Of 256 rows those in use or not zero are shown; any other comes on demand and stays."""
    reader.open("embedding")
    rows = [int(r.split("[")[1].split(",")[0]) for r in reader.numbers("embedding.weight") if r.endswith(",0]")]
    assert rows == [0, 12, 45, 78, 255]
    form = reader.page.locator(".gb-more-rows").first
    for text in ("256", "abc", "-1", "1.5", ""):
        form.locator("input").fill(text)
        reader.press("Enter")
        expect(form.locator(".gb-refusal-inline")).to_contain_text("255", use_inner_text=True)
    form.locator("input").fill("7")
    reader.press("Enter")
    reader.wait_until_drawn("embedding.weight[7,0]")
    reader.wait_for_address(has="rows=7")
    rows = [int(r.split("[")[1].split(",")[0]) for r in reader.numbers("embedding.weight") if r.endswith(",0]")]
    assert rows == [0, 7, 12, 45, 78, 255]
    reader.edit("embedding.weight[7,3]", 0.5)

    reader.go("lm_head", "logits[0,2,7]")
    assert reader.text("logits[0,2,7]") == "0.0000"
    reader.edit("lm_head.weight[7,1]", 50.0)
    expect(reader.in_strip(".gb-top")).to_have_text(re.compile("^#7 "), use_inner_text=True)
    expect(reader.in_strip(".gb-prediction s")).to_have_text("mats 0.9073", use_inner_text=True)
    reader.go("embedding", "embedding.weight[7,3]")
    reader.wait_for_edits({"embedding.weight[7,3]": 0.5, "lm_head.weight[7,1]": 50.0})
    address, before = reader.page.url, reader.numbers()
    reader.page.goto("about:blank")
    reader.page.goto(address)
    reader.wait_until_drawn("embedding.weight[7,3]")
    assert reader.numbers() == before
    reader.wait_for_edits({"embedding.weight[7,3]": 0.5, "lm_head.weight[7,1]": 50.0})
