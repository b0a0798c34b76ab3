"""What an edit does to the rest: downstream cells, marks, strip, modes, history, snapshots."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.support import ATTENTION, Reader, label, printed

WQ01 = f"{ATTENTION}.Wq[0,1]"
UPSTREAM = ("embedding.", "layers.0.norm1.", f"{ATTENTION}.Wk", f"{ATTENTION}.k", f"{ATTENTION}.v", "causal_mask",
            "sqrt_head_size", "softmax_demo.")


def changes(before: dict[str, float], after: dict[str, float]) -> set[str]:
    return {reference for reference, value in after.items() if value != before[reference]}


def test_downstream_changes_and_upstream_does_not(reader: Reader) -> None:
    """After an edit of Wq: q and what follows differ and are marked; k, v and what came before do not."""
    reader.open("scores", head="0")
    before = reader.numbers()
    reader.edit(WQ01, 0.5)
    changed = changes(before, reader.numbers())
    tensors = {reference.partition("[")[0].removeprefix(f"{ATTENTION}.") for reference in changed}
    # a row still sums to one, but for the last bit
    assert tensors - {"row_sums"} == {
        "Wq", "q_rotated", "dot", "scores", "masked_scores", "weights.max", "weights.shifted", "weights.exp",
        "weights.sum", "weights",
    }
    assert not [reference for reference in changed if reference.startswith(UPSTREAM)]
    assert reader.marked("gb-changed") == changed
    assert reader.marked("gb-edited") == {WQ01}
    # Wq[c0, c1] reaches d1 of head 0 of every query, and position 0 reads itself alone
    assert {r for r in changed if "q_rotated" in r} == {
        f"{ATTENTION}.q_rotated[0,0,{t},{d}]" for t in range(3) for d in range(2)
    } - {f"{ATTENTION}.q_rotated[0,0,0,0]"}
    assert f"{ATTENTION}.weights[0,0,0,0]" not in changed

    # the strip: first changed tensor, before and after, how many edits
    expect(reader.in_strip(".gb-first-changed code")).to_have_text(f"{ATTENTION}.q", use_inner_text=True)
    prediction = reader.in_strip(".gb-prediction")
    expect(prediction.locator("s")).to_have_text("mats 0.9073", use_inner_text=True)
    after = prediction.locator("b").inner_text()
    assert after.startswith("mats ")
    assert after != "mats 0.9073"
    expect(reader.in_strip(".gb-edit-count")).to_contain_text("1", use_inner_text=True)

    # the same on other lessons: what lies before stays, what lies behind moves
    top = after.removeprefix("mats ")
    reader.go("lm_head", "contributions[90,0]")
    assert reader.text("logits[0,2,90]") == top
    assert "was 0.90729" in (reader.cell("logits[0,2,90]").get_attribute("title") or "")
    assert "logits[0,2,90]" in reader.marked("gb-changed")
    assert "logits[0,0,90]" not in reader.marked("gb-changed")
    reader.go("embedding", "embedding.weight[12,0]")
    assert reader.marked("gb-changed") == set()
    reader.wait_for_edits({WQ01: 0.5})


def test_an_edit_of_the_future_leaves_the_past_alone(reader: Reader) -> None:
    """Causality on the page: `on` moves only the last position."""
    reader.open("layers")
    before = reader.numbers()
    reader.go("embedding", "embedding.weight[78,0]")
    reader.edit("embedding.weight[78,0]", 3.0)
    expect(reader.in_strip(".gb-first-changed code")).to_have_text("embedding.output", use_inner_text=True)
    reader.go("layers", "layers.1.output[0,0,0]")
    changed = changes(before, reader.numbers())
    assert changed
    assert all(",2," in reference for reference in changed)


def test_delta_and_both(reader: Reader) -> None:
    """Δ shows value minus baseline with its sign; "both" adds it below; equal cells show neither."""
    reader.open("scores")
    score = f"{ATTENTION}.scores[0,0,2,1]"
    before = reader.numbers()
    reader.edit(WQ01, 0.5)
    after = reader.numbers()
    difference = printed(abs(after[score] - before[score]))
    sign = "−" if after[score] < before[score] else "+"

    reader.in_strip(".gb-mode").filter(has_text=label("both", "en")).click()
    reader.wait_for_address(has="mode=both")
    assert reader.text(score).split() == [printed(after[score]), sign + difference]
    assert reader.text(f"{ATTENTION}.k_rotated[0,0,2,0]") == printed(before[f"{ATTENTION}.k_rotated[0,0,2,0]"])

    reader.in_strip(".gb-mode").filter(has_text=label("delta", "en")).click()
    reader.wait_for_address(has="mode=delta")
    assert reader.text(score) == sign + difference
    assert reader.text(WQ01) == "+0.5000"
    assert reader.text(f"{ATTENTION}.k_rotated[0,0,2,0]") == "·"
    assert reader.text(f"{ATTENTION}.masked_scores[0,0,0,1]") in ("", "·"), "no difference of −∞ and −∞"
    assert reader.number(score) == after[score], "data-value stays the value"

    # the mode stays over a change of lesson, and values come back
    reader.go("values", f"{ATTENTION}.Wo[0,0]")
    assert reader.text(f"{ATTENTION}.Wo[0,0]") == "·"
    reader.in_strip(".gb-mode").filter(has_text=label("values", "en")).click()
    reader.wait_for_address(lacks="mode=")
    assert reader.text(f"{ATTENTION}.Wo[0,0]") == "1.0000"


def test_history(reader: Reader) -> None:
    """Undo, redo, reset of a cell, a tensor, everything; each brings back the same numbers."""
    reader.open("scores")
    undo, redo = reader.in_strip(".gb-strip-history button").nth(0), reader.in_strip(".gb-strip-history button").nth(1)
    reset_all = reader.in_strip(".gb-strip-history button").nth(2)
    assert undo.is_disabled()
    assert redo.is_disabled()
    assert reset_all.is_disabled()
    states = [reader.numbers()]
    wk = f"{ATTENTION}.Wk[1,1]"
    for reference, value in ((WQ01, 0.5), (f"{ATTENTION}.Wq[2,3]", -1.0), (wk, 2.0)):
        reader.edit(reference, value)
        states.append(reader.numbers())

    undo.click()
    reader.wait_for_number(wk, 1.0)
    assert reader.numbers() == states[2]
    undo.click()
    reader.wait_for_number(f"{ATTENTION}.Wq[2,3]", 0.0)
    assert reader.numbers() == states[1]
    redo.click()
    reader.wait_for_number(f"{ATTENTION}.Wq[2,3]", -1.0)
    redo.click()
    reader.wait_for_number(wk, 2.0)
    assert reader.numbers() == states[3]
    assert redo.is_disabled()

    reader.select(wk)
    reader.page.click(f".gb-editor button:has-text('{label('reset_cell', 'en')}')")
    reader.wait_for_number(wk, 1.0)
    assert reader.numbers() == states[2]
    reader.select(WQ01)
    reader.page.click(f".gb-editor button:has-text('{label('reset_tensor', 'en')}')")
    reader.wait_for_number(WQ01, 0.0)
    assert reader.numbers() == states[0]
    reader.wait_for_address(lacks="edits=")
    undo.click()
    reader.wait_for_number(WQ01, 0.5)
    assert reader.numbers() == states[2], "a reset can be undone"
    reset_all.click()
    reader.wait_for_number(WQ01, 0.0)
    assert reader.numbers() == states[0]
    assert reader.marked("gb-changed") == set()
    expect(reader.in_strip(".gb-first-changed")).to_have_count(0)
    expect(reader.in_strip(".gb-prediction s")).to_have_count(0)

    # a new edit after an undo drops what could have been redone
    undo.click()
    reader.wait_for_number(WQ01, 0.5)
    undo.click()
    reader.wait_until_answered()
    reader.edit(WQ01, 0.75)
    assert redo.is_disabled()


def test_snapshots(reader: Reader) -> None:
    """Named states to come back to, on any lesson; names are text, whatever they hold."""
    reader.open("scores")
    reader.edit(WQ01, 0.5)
    at_half = reader.numbers()
    save_snapshot(reader, "half")
    reader.edit(WQ01, -2.0)
    save_snapshot(reader, "<b>minus *two*</b>")
    reader.in_strip(".gb-strip-history button").nth(2).click()
    reader.wait_for_number(WQ01, 0.0)

    reader.go("qkv", f"{ATTENTION}.Wv[0,0]")
    assert restore_names(reader) == ["half", "<b>minus *two*</b>"]
    reader.in_strip(".gb-menu .gb-link").nth(1).click()
    reader.wait_for_number(WQ01, -2.0)
    reader.go("scores", "causal_mask[0,0]")
    restore_names(reader)
    reader.in_strip(".gb-menu .gb-link").nth(0).click()
    reader.wait_for_number(WQ01, 0.5)
    assert reader.numbers() == at_half
    reader.leave_everything()
    reader.press("Control+z")
    reader.wait_for_number(WQ01, -2.0)


def save_snapshot(reader: Reader, name: str) -> None:
    names = reader.in_strip(".gb-menu .gb-link").count()
    reader.in_strip(".gb-menu summary").click()
    reader.in_strip(".gb-menu input").fill(name)
    reader.press("Enter")
    reader.page.wait_for_function(
        "(count) => document.querySelectorAll('.gb-strip .gb-menu .gb-link').length === count", arg=names + 1
    )


def restore_names(reader: Reader) -> list[str]:
    """Open the menu and read the names in it."""
    reader.in_strip(".gb-menu summary").click()
    return reader.in_strip(".gb-menu .gb-link").all_inner_texts()
