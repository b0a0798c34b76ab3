"""The lessons' own controls, the presets, and what stays through every change of place."""

from __future__ import annotations

from math import cos, sin, sqrt

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.browser.support import ATTENTION, LESSONS, Reader, label, lesson_title

SIDEBAR = '[data-testid="stSidebar"]'
SCRATCH_SENTENCE = ("red 0", "fox 2", "and 4", "red 0", "fox 2")


def test_switch_of_the_scale(reader: Reader) -> None:
    """Without ÷ √D the scores are the dot products, and softmax is sharper; the article's example beside it."""
    reader.open("scores")
    switch = reader.page.get_by_role("switch")
    assert switch.is_checked()
    with_scale = reader.number(f"{ATTENTION}.weights[0,0,2,1]")
    switch.focus()
    reader.press("Space")
    reader.wait_for_number("sqrt_head_size[]", 1.0)
    assert not switch.is_checked()
    for key in range(3):
        assert reader.number(f"{ATTENTION}.scores[0,0,2,{key}]") == reader.number(f"{ATTENTION}.dot[0,0,2,{key}]")
    assert reader.number(f"{ATTENTION}.weights[0,0,2,1]") > with_scale
    expect(reader.in_strip(".gb-prediction s")).to_have_text("mats 0.9073", use_inner_text=True)
    reader.press("Space")
    reader.wait_for_number("sqrt_head_size[]", sqrt(2))
    assert switch.is_checked()
    assert reader.number(f"{ATTENTION}.weights[0,0,2,1]") == with_scale
    reader.wait_for_address(lacks="edits=")

    # the factor between [1, 2, 3] and [10, 20, 30]
    reader.edit("softmax_demo.factor[]", 1.0)
    for score in range(3):
        small, large = (reader.number(f"softmax_demo.{size}_weights[{score}]") for size in ("small", "large"))
        assert small == large
    expect(reader.in_strip(".gb-prediction s"), "the example is no part of the model").to_have_count(0)


def test_slider_of_the_shift(reader: Reader) -> None:
    """RoPE: all positions shifted; q and k turn on, dot products and V stay."""
    reader.open("rope")
    before = reader.numbers()
    slider = reader.page.locator(".gb-control input[type=range]")
    slider.focus()
    for _ in range(3):
        reader.press("ArrowRight")
    reader.wait_for_number("rope.offset[]", 3.0)
    reader.wait_until_answered()
    after = reader.numbers()
    for reference, value in after.items():
        if "_rotated" in reference or "rope.angles" in reference or "rope.shifted" in reference:
            assert value != before[reference], reference
        if any(name in reference for name in ("attention.dot", "v_heads", "q_heads", "rope.positions")):
            assert value == pytest.approx(before[reference], rel=1e-12), reference
    a, b = (before[f"{ATTENTION}.q_heads[0,0,2,{d}]"] for d in range(2))
    assert after[f"{ATTENTION}.q_rotated[0,0,2,0]"] == pytest.approx(a * cos(5) - b * sin(5), rel=1e-12)
    assert after[f"{ATTENTION}.q_rotated[0,0,2,1]"] == pytest.approx(a * sin(5) + b * cos(5), rel=1e-12)
    reader.wait_for_edits({"rope.offset[]": 3.0})
    # what is shown to four decimals stays
    expect(reader.in_strip(".gb-top")).to_have_text("mats 0.9073", use_inner_text=True)

    # the picture follows
    reader.page.locator(".js-plotly-plot .scatterlayer").wait_for()


def test_slider_of_the_factor(reader: Reader) -> None:
    """The last layer's output stretched: with the final norm the logits stay, without it they grow."""
    reader.open("final_norm")
    before = reader.numbers()
    slider = reader.page.locator(".gb-control input[type=range]")
    slider.focus()
    reader.press("End")
    reader.wait_for_number("scaled.factor[]", 50.0)
    after = reader.numbers()
    for row in (90, 91, 92):
        with_norm, without_norm = f"scaled.with_norm.logits[0,{row}]", f"scaled.without_norm.logits[0,{row}]"
        assert after[with_norm] == pytest.approx(before[with_norm], abs=1e-6)
        assert after[without_norm] == pytest.approx(50 * before[without_norm], rel=1e-12)
    assert after["scaled.without_norm.probabilities[0,90]"] == pytest.approx(1.0)
    expect(reader.in_strip(".gb-prediction s"), "an experiment beside the model").to_have_count(0)
    reader.press("Home")
    reader.wait_for_number("scaled.factor[]", 0.1)
    assert reader.number("scaled.without_norm.probabilities[0,90]") < before["scaled.without_norm.probabilities[0,90]"]

    # the slider of the selected cell too, though its steps do not divide the range
    reader.select("scaled.factor[]")
    editor = reader.page.locator(".gb-editor .gb-slider")
    editor.focus()
    reader.press("End")
    reader.wait_for_number("scaled.factor[]", 50.0)
    assert editor.evaluate("(node) => node.value === node.max")


def test_charts(reader: Reader) -> None:
    """Bars follow the edits; the labels are the board's."""
    reader.open("lm_head")
    plot = reader.page.locator(".js-plotly-plot")
    plot.locator(".bars").first.wait_for()
    expect(plot).to_contain_text("mats", use_inner_text=True)
    reader.edit("lm_head.weight[91,3]", 2.0)
    top = reader.in_strip(".gb-top").inner_text()
    assert top.startswith("chairs ")
    reader.page.wait_for_function(
        "(text) => document.querySelector('.js-plotly-plot')?.textContent.includes(text)", arg=top.split()[1]
    )


def test_presets(reader: Reader) -> None:
    """The scratch model, its seed and pairing; the way back finds the first model as it was left."""
    reader.open("rope")
    offset = "rope.offset[]"
    reader.edit(offset, 2.0)
    left = reader.numbers()
    reader.choose(label("preset", "en"), label("preset_scratch", "en"))
    reader.wait_for_tokens(*SCRATCH_SENTENCE)
    reader.wait_until_drawn(f"{ATTENTION}.q_rotated[0,0,4,3]")
    reader.wait_for_address(has="preset=scratch")
    reader.wait_for_address(lacks="edits=")
    assert len(reader.numbers("rope.frequencies")) == 2

    # half against neighbours: the same at position 0, where the angle is 0, other numbers from 1 on
    neighbours = reader.numbers(f"{ATTENTION}.q_rotated")
    reader.choose(label("pairing", "en"), label("pairing_half", "en"))
    reader.wait_for_address(has="arch=rope_pairing-half")
    reader.wait_for_change(f"{ATTENTION}.q_rotated[0,0,1,0]", neighbours[f"{ATTENTION}.q_rotated[0,0,1,0]"])
    half = reader.numbers(f"{ATTENTION}.q_rotated")
    for reference, value in half.items():
        is_first = f"{ATTENTION}.q_rotated[0,0,0," in reference
        assert (value == neighbours[reference]) is is_first, reference
    q = [reader.number(f"{ATTENTION}.q_heads[0,0,1,{d}]") for d in range(4)]
    slow = 10000 ** -0.5
    assert [half[f"{ATTENTION}.q_rotated[0,0,1,{d}]"] for d in range(4)] == pytest.approx([
        q[0] * cos(1) - q[2] * sin(1), q[1] * cos(slow) - q[3] * sin(slow),
        q[0] * sin(1) + q[2] * cos(1), q[1] * sin(slow) + q[3] * cos(slow),
    ], rel=1e-12)
    reader.cell(f"{ATTENTION}.q_rotated[0,0,1,1]").hover()
    assert {f"{ATTENTION}.q_heads[0,0,1,1]", f"{ATTENTION}.q_heads[0,0,1,3]"} <= reader.marked("src")

    seed = reader.page.locator(f"{SIDEBAR} input[type=number]")
    seed.fill("77")
    seed.press("Enter")
    reader.wait_for_address(has="seed=77")
    reader.wait_for_change(f"{ATTENTION}.q_heads[0,0,1,0]", q[0])
    reader.edit(offset, 1.0)
    reader.wait_for_edits({offset: 1.0})
    scratch_address = reader.page.url
    scratch = reader.numbers()

    reader.choose(label("preset", "en"), label("preset_cats", "en"))
    reader.wait_for_tokens("Cats 12", "sit 45", "on 78")
    reader.wait_until_drawn(f"{ATTENTION}.q_rotated[0,0,2,1]")
    reader.wait_for_number(offset, 2.0)
    assert reader.numbers() == left
    reader.choose(label("preset", "en"), label("preset_scratch", "en"))
    reader.wait_for_tokens(*SCRATCH_SENTENCE)
    reader.wait_for_number(offset, 1.0)
    assert reader.numbers() == scratch
    reader.page.wait_for_function("(address) => location.href === address", arg=scratch_address)

    # every lesson works with it
    for lesson in LESSONS[1:]:
        reader.page.click(f'[data-testid="stSidebarNav"] a[href="{reader.url}/{lesson}"]')
        reader.page.wait_for_function("(path) => location.pathname === path", arg=f"/{lesson}")
        reader.wait_until_drawn()
    assert reader.tokens == list(SCRATCH_SENTENCE)
    reader.wait_for_edits({offset: 1.0})


def test_language_keeps_everything(visit: Visit) -> None:
    """Switching the language changes words and nothing else; an unknown browser language reads English."""
    reader = visit(locale="zh-CN")
    reader.page.goto(f"{reader.url}/scores")
    reader.wait_until_drawn()
    expect(reader.page.locator("h1")).to_have_text(lesson_title("scores", "zh"), use_inner_text=True)
    reader.page.get_by_role("button", name="English", exact=True).click()
    reader.wait_for_text("h1", lesson_title("scores", "en"))
    reader.wait_until_drawn()

    reader.edit(f"{ATTENTION}.Wq[0,1]", 0.5)
    reader.edit(f"{ATTENTION}.Wk[2,2]", -1.5)
    reader.in_strip("select").nth(1).select_option("1")
    reader.wait_until_drawn(f"{ATTENTION}.scores[0,1,2,1]")
    reader.in_strip(".gb-mode").nth(2).click()
    reader.wait_for_address(has="mode=both")
    reader.select(f"{ATTENTION}.scores[0,1,2,1]")
    before, query, formula = reader.numbers(), reader.query, reader.formula()

    reader.page.get_by_role("button", name="中文", exact=True).click()
    reader.wait_for_text("h1", lesson_title("scores", "zh"))
    reader.wait_until_drawn(f"{ATTENTION}.scores[0,1,2,1]")
    reader.wait_for_address(has="lang=zh")
    reader.wait_for_query({**query, "lang": "zh"})
    assert reader.numbers() == before
    assert reader.formula() == formula
    assert reader.marked("gb-selected") == {f"{ATTENTION}.scores[0,1,2,1]"}
    assert label("undo", "zh") == reader.in_strip(".gb-strip-history button").first.get_attribute("aria-label")
    reader.in_strip(".gb-strip-history button").first.click()
    reader.wait_for_change(f"{ATTENTION}.Wk[2,2]", -1.5)

    other = visit(locale="fr-FR")
    other.page.goto(other.url)
    other.wait_until_drawn()
    expect(other.page.locator("h1")).to_have_text(lesson_title("overview", "en"), use_inner_text=True)


def test_layers_and_heads(reader: Reader) -> None:
    """The selectors move the board to another layer or head, and the choice goes along to other lessons."""
    reader.open("qkv")
    reader.in_strip("select").nth(0).select_option("1")
    reader.wait_until_drawn("layers.1.attention.Wq[0,0]")
    reader.wait_for_address(has="layer=2")
    assert reader.numbers(ATTENTION) == {}
    reader.go("scores", "layers.1.attention.scores[0,0,2,1]")
    reader.in_strip("select").nth(1).select_option("1")
    reader.wait_until_drawn("layers.1.attention.scores[0,1,2,1]")
    row = [reader.number(f"layers.1.attention.weights[0,1,2,{key}]") for key in range(3)]
    assert sum(row) == pytest.approx(1.0)
    reader.go("values", "layers.1.attention.Wo[0,0]")
    reader.wait_for_query({"lang": "en", "layer": "2", "head": "1"})
    reader.go("rmsnorm", "layers.1.norm1.rms[0,0]")
    assert reader.text("layers.0.output[0,2,1]") == "2.0614", "what enters layer 2 leaves layer 1"
