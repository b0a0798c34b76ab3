"""The walk on another architecture than its own: what is there is shown and lights up, what is not is said."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from engine import Edit, presets, run
from tests.browser.support import LANGUAGES, LESSONS, Reader, address, label

ABSENT = ("rmsnorm", "rope")
PICKED = {
    "overview": "layers.0.output[0,4,0]", "embedding": "embedding.sum[0,2,1]", "layer": "layers.0.residual1[0,4,3]",
    "qkv": "layers.0.attention.bq[0]", "scores": "layers.0.attention.scores[0,0,4,4]",
    "values": "layers.0.attention.bo[0]", "residual": "layers.0.residual1[0,4,3]",
    "mlp": "layers.0.mlp.activation[0,4,7]", "layers": "embedding.sum[0,4,0]", "final_norm": "final_norm.std[0,4]",
    "lm_head": "embedding.weight[5120,0]",
}


@pytest.mark.parametrize("language", LANGUAGES[1:])
def test_every_lesson_of_the_walk_on_today(reader: Reader, language: str) -> None:
    """One cell of each, at the engine's number; where the model has nothing of it, a sentence and a way out."""
    trace = run(presets.load("today"), presets.SENTENCES["today"])
    for lesson in LESSONS:
        if lesson in ABSENT:
            reader.page.goto(f"{reader.url}{address(lesson, preset='today', lang=language)}")
            reader.page.get_by_text(label(f"absent_{lesson}", language)).wait_for()
            expect(reader.page.locator(".gb-board td[data-ref]")).to_have_count(0)
            continue
        reader.open(lesson, preset="today", lang=language)
        reference = PICKED[lesson]
        name, index = re.fullmatch(r"(.+)\[(.+)\]", reference).groups()  # type: ignore[union-attr]
        assert reader.number(reference) == trace[name].number(tuple(map(int, index.split(","))))
        assert reader.message() is None


def test_from_a_lesson_that_does_not_apply_to_a_model_that_has_it(reader: Reader) -> None:
    reader.page.goto(f"{reader.url}{address('rope', preset='today')}")
    words = label("show_with", "en").format(preset=label("preset_cats", "en"))
    reader.page.get_by_role("button", name=words).click()
    reader.wait_until_drawn("layers.0.attention.q_rotated[0,0,2,0]")
    assert reader.text("layers.0.attention.q_rotated[0,0,2,0]") == "−0.6663"


def test_a_row_of_the_position_table_lights_up(reader: Reader) -> None:
    reader.open("embedding", preset="today")
    output, table = "position_embedding.output[3,7]", "position_embedding.weight[3,7]"
    reader.cell(output).hover()
    assert reader.marked("src") == {table}
    assert reader.marked("feeds") == {"embedding.sum[0,3,7]"}
    reader.cell(table).hover()
    assert reader.marked("feeds") == {output}
    # the row after the sentence's last is used by nobody
    reader.cell("position_embedding.weight[5,7]").hover()
    assert reader.marked("feeds") == set()


def test_a_negative_number_under_a_power_stands_in_brackets(reader: Reader) -> None:
    reader.open("mlp", preset="today")
    x, y = "layers.0.mlp.up[0,4,2]", "layers.0.mlp.activation[0,4,2]"
    assert reader.number(x) < 0
    reader.select(y)
    shown = reader.text(x)
    assert reader.formula() == (
        f"L1·mlp.activation[真, f2] = {shown} ÷ 2 × (1 + tanh(√(2 ÷ π) × ({shown} + 0.044715 × ({shown})³)))"
        f" = {reader.text(y)}"
    )


def test_a_tied_head_is_the_embedding_s_own_table(reader: Reader) -> None:
    """An edit on the head's lesson is one of the embedding's, and seen on its page."""
    reader.open("lm_head", preset="today")
    cell = "embedding.weight[4096,1]"
    reader.edit(cell, 0.9)
    change = Edit("embedding.weight", (4096, 1), 0.9)
    trace = run(presets.load("today"), presets.SENTENCES["today"], edits=[change])
    reader.wait_for_number("logits[0,4,4096]", trace["logits"].number((0, 4, 4096)), tolerance=1e-12)
    reader.wait_for_edits({cell: 0.9})
    reader.go("embedding", "embedding.output[0,4,1]")
    assert reader.number("embedding.output[0,4,1]") == 0.9
    assert cell in reader.marked("gb-edited")


def test_switches_in_the_address(reader: Reader) -> None:
    reader.open("scores", arch="qk_norm-on.causal-off.scale_scores-off")
    assert reader.number("layers.0.attention.dot[0,0,0,0]") == pytest.approx(2.0, abs=1e-5)
    expect(reader.page.locator('td[data-ref="causal_mask[0,1]"]')).to_have_count(0)
    assert reader.number("layers.0.attention.weights[0,0,0,2]") > 0
