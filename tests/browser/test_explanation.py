"""Asking a number where it came from, down to parameters and token ids; and overriding what was computed."""

from __future__ import annotations

from math import inf, isnan

import pytest
from playwright.sync_api import expect

from engine import Edit, presets, run
from formats import edits as edit_links
from tests.browser.support import ATTENTION, Reader, label, printed

TRAIL = ".gb-trail button"
OPERAND = ".gb-formula button.gb-operand"


def test_from_a_logit_down_to_a_parameter_and_the_ids(reader: Reader) -> None:
    """Every operand is a way to its own arithmetic, over all lessons, and the trail leads back."""
    reader.open("lm_head")
    trace = run(presets.load("cats"), "Cats sit on")
    reader.select("logits[0,2,90]")
    assert reader.formula().startswith("logits[on, mats] = −0.0031 × 0.2000 + 0.9637 × 0.4000 + ")
    assert reader.formula().endswith("= 0.9073")
    expect(reader.page.locator(OPERAND)).to_have_count(8)
    assert len(reader.page.inner_text(".gb-words")) > 20
    line = reader.page.inner_text(".gb-numpy code")
    assert line == 'trace["final_norm.output"].data[0, 2, :] @ trace["lm_head.weight"].data[90, :]'
    assert eval(line, {"trace": trace}) == pytest.approx(reader.number("logits[0,2,90]"), rel=1e-12)

    # one step: a parameter, which nothing made
    follow(reader, "lm_head.weight[90,1]")
    assert reader.formula() == "lm_head.weight[mats, c1] = 0.4000"
    expect(reader.page.locator(".gb-words")).to_have_text(label("explain_parameter_lm_head", "en"), use_inner_text=True)
    expect(reader.page.locator(".gb-editor")).to_be_visible()
    reader.page.locator(TRAIL).first.click()
    reader.wait_for_selection("logits[0,2,90]")
    assert reader.formula().endswith("= 0.9073")

    # many steps: through norms, residuals and attention, down to the embedding's row and the id
    way = [
        "final_norm.output[0,2,1]", "final_norm.normalized[0,2,1]",
        *(f"layers.1.{cell}" for cell in (
            "output[0,2,1]", "residual1[0,2,1]", "attention.output[0,2,1]", "attention.merged[0,2,1]",
            "attention.head_output[0,0,2,1]", "attention.v_heads[0,0,1,1]", "attention.v[0,1,1]",
            "norm1.output[0,1,1]", "norm1.normalized[0,1,1]",
        )),
        "layers.0.output[0,1,1]", "layers.0.residual1[0,1,1]", "embedding.output[0,1,1]",
    ]
    for reference in way:
        follow(reader, reference)
        name, _, index = reference.removesuffix("]").partition("[")
        value = float(trace[name].data[tuple(map(int, index.split(",")))])
        assert reader.formula().endswith(f"= {printed(value)}")
        line = reader.page.inner_text(".gb-numpy code")
        assert eval(line, {"trace": trace}) == pytest.approx(value, rel=1e-12), line
    expect(reader.page.locator(".gb-words")).to_contain_text("45", use_inner_text=True)
    follow(reader, "embedding.weight[45,1]")
    assert reader.formula() == "embedding.weight[sit, c1] = 0.5000"
    expect(reader.page.locator(TRAIL)).to_have_count(len(way) + 1)

    # the trail goes back to any earlier place and forgets what came after
    reader.page.locator(TRAIL).nth(3).click()
    reader.wait_for_selection(way[2])
    expect(reader.page.locator(TRAIL)).to_have_count(3)

    # and the ids themselves explain what they are
    reader.go("embedding", "input_ids[0,1]")
    reader.select("input_ids[0,1]")
    expect(reader.page.locator(".gb-words")).to_have_text(label("explain_ids", "en"), use_inner_text=True)
    assert reader.page.locator(".gb-editor").is_hidden()
    reader.page.click(".gb-dock > .gb-close")
    reader.wait_for_address(lacks="cell=")


def follow(reader: Reader, reference: str) -> None:
    reader.page.locator(f'{OPERAND}[data-operand="{reference}"]').first.click()
    reader.wait_for_selection(reference)


@pytest.mark.parametrize(("lesson", "reference", "formula"), [
    ("scores", f"{ATTENTION}.scores[0,0,2,1]", "scores[on, sit] = 1.2449 ÷ 1.4142 = 0.8803"),
    ("mlp", "layers.0.mlp.activation[0,2,2]", "mlp.activation[on, f2] = max(0, −0.5364) = 0.0000"),
    ("why_residuals", "why_residuals.plain.1.gradient_h[0]",
     "why_residuals.plain.1.gradient_h[u0] = −5.66e−5 × 0.8783 = −4.97e−5"),
], ids=["scores", "mlp", "why_residuals"])
def test_formulas(reader: Reader, lesson: str, reference: str, formula: str) -> None:
    """The panel in Chinese: the same numbers, other words; operands carry every digit."""
    reader.open(lesson, lang="zh")
    reader.select(reference)
    assert formula.partition(" = ")[2] in reader.formula()
    for title in reader.page.eval_on_selector_all(OPERAND, "(all) => all.map((each) => each.title)"):
        assert " = " in title
        assert len(title.partition(" = ")[2]) > 10 or title.endswith("0")


def test_marks_of_hover_and_focus(reader: Reader) -> None:
    """What a cell was made from and what it feeds light up, for the pointer and for the focus."""
    reader.open("scores")
    sources = {f"{ATTENTION}.{name}_rotated[0,0,{row},{d}]" for name, row in (("q", 2), ("k", 1)) for d in range(2)}
    dot, score = f"{ATTENTION}.dot[0,0,2,1]", f"{ATTENTION}.scores[0,0,2,1]"
    masked = f"{ATTENTION}.masked_scores[0,0,2,1]"

    reader.cell(dot).hover()
    assert reader.marked("src") == sources
    assert reader.marked("feeds") == {score}
    reader.cell(score).hover()
    assert reader.marked("src") == {dot, "sqrt_head_size[]"}
    assert reader.marked("feeds") == {masked}
    reader.cell(masked).hover()
    assert reader.marked("src") == {score, "causal_mask[2,1]"}
    assert reader.marked("feeds") == {f"{ATTENTION}.weights.max[0,0,2]", f"{ATTENTION}.weights.shifted[0,0,2,1]"}
    reader.page.locator("h1").hover()
    assert reader.marked("src") == reader.marked("feeds") == set()

    weights = {f"{ATTENTION}.weights[0,0,2,{key}]" for key in range(3)}
    reader.focus(f"{ATTENTION}.weights.sum[0,0,2]")
    assert reader.marked("src") == {f"{ATTENTION}.weights.exp[0,0,2,{key}]" for key in range(3)}
    assert reader.marked("feeds") == weights
    reader.press("ArrowUp")
    assert reader.marked("feeds") == {reference.replace("0,0,2", "0,0,1") for reference in weights}

    # past tensors that are not on the page: values shows weights and v_heads, not what lies between
    reader.leave_everything()
    reader.focus(f"{ATTENTION}.Wq[0,1]")
    assert reader.marked("feeds") == {
        f"{ATTENTION}.q_rotated[0,0,{position},{d}]" for position in range(3) for d in range(2)
    }
    reader.open("embedding")
    reader.focus("embedding.output[0,1,2]")
    assert reader.marked("src") == {"embedding.weight[45,2]", "input_ids[0,1]"}
    # an operand in the panel lights up its cell
    reader.select("embedding.output[0,1,2]")
    reader.page.locator(OPERAND).first.hover()
    assert reader.marked("gb-lit") == {"embedding.weight[45,2]"}


def test_override_of_a_computed_cell(reader: Reader) -> None:
    """A double click sets an activation by hand; what it would have been stays to be seen."""
    reader.open("scores")
    weight = f"{ATTENTION}.weights[0,0,2,1]"
    computed = reader.number(weight)
    before = reader.numbers()
    reader.edit(weight, 0.0)
    changed = {reference for reference, value in reader.numbers().items() if value != before[reference]}
    assert changed == {weight, f"{ATTENTION}.row_sums[0,0,2]"}, "the row no longer sums to one"
    reader.wait_for_text(".gb-formula", "0.5376")
    assert label("computed_would_be", "en") in reader.formula()
    for bracket in "()":
        assert reader.page.inner_text(".gb-dock").count(bracket) == 0, "no bracket is left open"
    expect(reader.page.locator(".gb-words")).to_have_text(label("explain_override", "en"), use_inner_text=True)
    assert weight in reader.marked("gb-edited")
    expect(reader.in_strip(".gb-first-changed code")).to_have_text(f"{ATTENTION}.weights", use_inner_text=True)

    # upstream of the override nothing counts any more: the computed value moves, the cell does not
    reader.edit(f"{ATTENTION}.Wq[0,0]", 3.0)
    reader.select(weight)
    assert "0.5376" not in reader.formula()
    assert reader.number(weight) == 0.0
    reader.go("values", f"{ATTENTION}.head_output[0,0,2,0]")
    row = [reader.number(f"{ATTENTION}.weights[0,0,2,{key}]") for key in range(3)]
    values = [reader.number(f"{ATTENTION}.v_heads[0,0,{key},0]") for key in range(3)]
    assert reader.number(f"{ATTENTION}.head_output[0,0,2,0]") == pytest.approx(
        sum(a * b for a, b in zip(row, values, strict=True)), rel=1e-12
    )
    reader.focus(weight)
    reader.press("Delete")
    reader.wait_for_change(weight, 0.0)
    reader.leave_everything()
    reader.in_strip(".gb-strip-history button").nth(2).click()
    reader.wait_for_number(weight, computed)
    reader.wait_for_address(lacks="edits=")


def test_whole_tensors_by_a_link(reader: Reader) -> None:
    """An edit of a slice comes in by the address: a head switched off, and reset as one tensor."""
    head = Edit(f"{ATTENTION}.head_output", (0, 1, slice(None), slice(None)), 0.0)
    reader.open("values", edits=edit_links.encode([head]))
    off = reader.numbers(f"{ATTENTION}.head_output[0,1,")
    assert len(off) == 6
    assert set(off.values()) == {0.0}
    assert off.keys() <= reader.marked("gb-edited")
    assert reader.text(f"{ATTENTION}.merged[0,2,0]") == "−0.3108"
    assert reader.number(f"{ATTENTION}.merged[0,2,2]") == 0.0
    assert edit_links.decode(reader.query["edits"]) == (head,)

    # one cell of the switched-off head set by hand on top of the slice
    cell = f"{ATTENTION}.head_output[0,1,2,0]"
    reader.edit(cell, 1.5)
    assert reader.number(f"{ATTENTION}.merged[0,2,2]") == 1.5
    assert reader.number(f"{ATTENTION}.merged[0,1,2]") == 0.0
    reader.select(cell)
    reader.page.click(f".gb-editor button:has-text('{label('reset_tensor', 'en')}')")
    reader.wait_for_change(f"{ATTENTION}.merged[0,2,2]", 1.5)
    assert reader.text(cell) == "−0.5261"
    reader.wait_for_address(lacks="edits=")


def test_reset_of_one_cell_of_a_slice(reader: Reader) -> None:
    """"Reset cell" on a cell that a slice covers must do what it says, or not be offered."""
    head = Edit(f"{ATTENTION}.head_output", (0, 1, slice(None), slice(None)), 0.0)
    reader.open("values", edits=edit_links.encode([head]))
    cell = f"{ATTENTION}.head_output[0,1,2,0]"
    reader.select(cell)
    reset = reader.page.locator(f".gb-editor button:has-text('{label('reset_cell', 'en')}')")
    if reset.is_enabled():
        reset.click()
        reader.wait_for_change(cell, 0.0)
        assert reader.text(cell) == "−0.5261"
        assert reader.number(f"{ATTENTION}.head_output[0,1,1,0]") == 0.0


def test_minus_infinity(reader: Reader) -> None:
    """−∞ may be typed into masks and masked scores; a row that masks every key has no weights (case A13)."""
    reader.open("scores")
    masked = [f"{ATTENTION}.masked_scores[0,0,2,{key}]" for key in range(3)]
    weights = [f"{ATTENTION}.weights[0,0,2,{key}]" for key in range(3)]
    for entry, reference in zip(("-inf", "−∞", "-Infinity"), masked, strict=True):
        reader.select(reference)
        reader.type(reference, entry)
        reader.wait_for_number(reference, -inf)
        assert reader.text(reference) == "−∞"
    assert [reader.number(reference) for reference in weights] == [0.0, 0.0, 0.0]
    assert [reader.text(reference) for reference in weights] == ["0.0000"] * 3
    reader.wait_for_edits(dict.fromkeys(masked, -inf))
    no_nan_on_the_page(reader)
    for reference in (*masked, *weights):
        reader.select(reference)
        expect(reader.page.locator(".gb-dock")).not_to_contain_text("NaN", use_inner_text=True)
    reader.in_strip(".gb-mode").filter(has_text=label("both", "en")).click()
    reader.wait_for_address(has="mode=both")
    no_nan_on_the_page(reader)
    reader.in_strip(".gb-mode").filter(has_text=label("delta", "en")).click()
    reader.wait_for_address(has="mode=delta")
    no_nan_on_the_page(reader)

    reader.go("values", f"{ATTENTION}.head_output[0,0,2,0]")
    assert reader.number(f"{ATTENTION}.head_output[0,0,2,0]") == 0.0
    no_nan_on_the_page(reader)
    for lesson, logit in (("lm_head", "logits[0,2,90]"), ("final_norm", "scaled.with_norm.logits[0,90]")):
        reader.go(lesson, logit)
        no_nan_on_the_page(reader)

    # the mask itself: the future opened, and a key closed, for every head at once
    reader.open("scores", edits=edit_links.encode([Edit("causal_mask", (0, slice(None)), -inf)]))
    assert [reader.number(f"{ATTENTION}.weights[0,0,0,{key}]") for key in range(3)] == [0.0, 0.0, 0.0]
    no_nan_on_the_page(reader)
    reader.edit("causal_mask[1,2]", 0.0)
    assert reader.number(f"{ATTENTION}.weights[0,0,1,2]") > 0


def no_nan_on_the_page(reader: Reader) -> None:
    assert not [reference for reference, value in reader.numbers().items() if isnan(value)]
    expect(reader.page.locator(".gb-board")).not_to_contain_text("NaN", use_inner_text=True)
    expect(reader.page.locator(".gb-strip")).not_to_contain_text("NaN", use_inner_text=True)
