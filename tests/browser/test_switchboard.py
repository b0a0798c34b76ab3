"""The switchboard in a browser: by mouse and by keyboard, in the address, on other lessons, and back."""

from __future__ import annotations

import numpy as np
import pytest
from playwright.sync_api import expect

from engine import Edit, presets, run
from engine.variants import variant
from tests.browser.support import ATTENTION, LANGUAGES, Reader, label

SCORE = f"{ATTENTION}.masked_scores[0,0,4,4]"
CATS_Q = f"{ATTENTION}.q_rotated[0,0,2,0]"
TABLES = '[data-testid="stDataFrame"] canvas table'
NOTICE = '[data-testid="stSidebar"] [data-testid="stAlert"]'
NANOCHAT = {
    "positions": "rope", "rope_pairing": "half", "rope_direction": -1, "norm": "rmsnorm", "qk_norm": True,
    "activation": "relu_squared", "bias": False, "tied_head": False, "logit_soft_cap": 15.0,
}


def press(reader: Reader, field: str, choice: str, language: str = "en") -> None:
    """Click one of a field's choices."""
    reader.page.locator(f".st-key-arch_{field}_{language}").get_by_role("radio", name=choice, exact=True).click()


def cells(reader: Reader, table: int, row: int) -> list[str]:
    """A line of a table as a screen reader finds it."""
    line = reader.page.locator(TABLES).nth(table).locator("tbody tr").nth(row)
    return [" ".join(text.split()) for text in line.locator("td").all_text_contents()]


def wait_for_tables(reader: Reader, count: int) -> None:
    reader.page.wait_for_function(
        "([tables, count]) => document.querySelectorAll(tables).length === count", arg=[TABLES, count],
    )


def test_a_switch_changes_the_board_the_tables_and_the_address(reader: Reader) -> None:
    """÷ √D off: the article's score of 真 for itself, 1.5, becomes 1.5 · √12."""
    reader.open("switchboard", preset="today")
    reader.wait_until_drawn(SCORE)
    assert reader.number(SCORE) == pytest.approx(1.5, abs=1e-12)
    expect(reader.page.locator(TABLES)).to_have_count(0)
    expect(reader.page.locator(NOTICE)).to_have_count(0)
    press(reader, "scale_scores", label("arch_off", "en"))
    reader.wait_for_number(SCORE, 1.5 * 12 ** 0.5, tolerance=1e-9)
    wait_for_tables(reader, 2)
    reader.wait_for_address(has="arch=scale_scores-off")
    expect(reader.page.locator(NOTICE)).to_contain_text(label("arch_scale_scores", "en"), use_inner_text=True)
    own, switched = (run(model, "今天天气真") for model in (
        presets.load("today"), variant(presets.load("today"), scale_scores=False),
    ))
    expected = switched["probabilities"].row(0, 4)
    token, before, after, _ = cells(reader, 0, 0)
    assert token == "好 · 5120"
    assert (float(before), float(after)) == (pytest.approx(85), pytest.approx(100 * expected[5120]))
    visible = np.tril_indices(5)
    differences = {
        name: np.abs(switched[name].data - own[name].data).max()
        for name in own if name in switched and not own[name].is_deferred and np.isfinite(own[name].data).all()
    }
    scores = "layers.0.attention.masked_scores"
    differences[scores] = np.abs(switched[scores].data[0, 0][visible] - own[scores].data[0, 0][visible]).max()
    assert differences[cells(reader, 1, 0)[0]] == max(differences.values())


def test_the_keyboard_reaches_every_choice(reader: Reader) -> None:
    """Arrow keys move within a field and do not leave the lesson; the focus stays where it was."""
    reader.open("switchboard")
    reader.wait_until_drawn(CATS_Q)
    field = reader.page.locator(".st-key-arch_norm_en")
    field.get_by_role("radio", checked=True).focus()
    reader.press("ArrowRight", "Space")
    reader.wait_for_address(has="arch=norm-layernorm")
    assert reader.page.evaluate("document.activeElement.innerText") == label("arch_norm_layernorm", "en")
    chosen = field.get_by_role("radio", checked=True)
    expect(chosen).to_have_text(label("arch_norm_layernorm", "en"), use_inner_text=True)
    assert "/switchboard" in reader.page.url
    # what has no effect cannot be chosen
    press(reader, "positions", label("arch_positions_none", "en"))
    reader.wait_for_address(has="positions-none")
    assert reader.page.locator(".st-key-arch_rope_pairing_en").get_by_role("radio").first.is_disabled()


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_combination_stays_on_other_lessons_until_it_is_taken_back(reader: Reader, language: str) -> None:
    reader.open("switchboard", lang=language)
    reader.wait_until_drawn(CATS_Q)
    reader.page.get_by_role("button", name="nanochat", exact=True).click()
    model = variant(presets.load("cats"), **NANOCHAT)
    trace = run(model, "Cats sit on")
    name = f"{ATTENTION}.q_norm.output"
    reader.wait_until_drawn(f"{name}[0,0,2,0]")
    assert reader.number(f"{name}[0,0,2,1]") == trace[name].data[0, 0, 2, 1]
    missing = label("combination_nanochat_missing", language)[:30]
    expect(reader.page.locator(".st-key-switchboard")).to_contain_text(missing, use_inner_text=True)

    weights = f"{ATTENTION}.weights[0,0,2,1]"
    reader.go("scores", weights)
    reader.wait_for_number(weights, float(trace[f"{ATTENTION}.weights"].data[0, 0, 2, 1]))
    expect(reader.page.locator(NOTICE)).to_contain_text(label("arch_qk_norm", language), use_inner_text=True)
    reader.wait_for_address(has="arch=")
    reader.page.reload()
    reader.wait_until_drawn(weights)
    assert reader.number(weights) == trace[f"{ATTENTION}.weights"].data[0, 0, 2, 1]
    reader.page.locator(".st-key-sidebar_own_architecture button").click()
    own = run(presets.load("cats"), "Cats sit on")[f"{ATTENTION}.weights"].data[0, 0, 2, 1]
    reader.wait_for_number(weights, float(own))
    reader.wait_for_address(lacks="arch=")
    expect(reader.page.locator(NOTICE)).to_have_count(0)


def test_an_edit_counts_on_both_sides(reader: Reader) -> None:
    """Before and after are the two models under the same edit; two engine runs say what the table has to show."""
    reader.open("switchboard", arch="norm-layernorm")
    reader.wait_until_drawn(CATS_Q)
    wait_for_tables(reader, 2)
    unedited = cells(reader, 0, 0)
    reader.edit(f"{ATTENTION}.output[0,2,1]", -3.0)
    reader.page.wait_for_function(
        "([tables, text]) => document.querySelector(tables).querySelector('tbody tr').textContent !== text",
        arg=[TABLES, "".join(unedited)],
    )
    edits = [Edit(f"{ATTENTION}.output", (0, 2, 1), -3.0)]
    own = presets.load("cats")
    before, after = (
        run(model, "Cats sit on", edits=edits)["probabilities"].data[0, 2]
        for model in (own, variant(own, norm="layernorm"))
    )
    token, *shown = cells(reader, 0, 0)
    number = int(token.rpartition(" ")[2])
    assert after[number] == after.max()
    assert [float(text) for text in shown[:2]] == pytest.approx([100 * before[number], 100 * after[number]])
    assert cells(reader, 0, 0) != unedited
