"""Lessons 20 and 21 in a browser: settings that slide, tokens by name, and a loop that steps, plays and is edited."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.browser.support import ATTENTION, LANGUAGES, Reader, label

TEMPERATURE, TOP_K = "choosing.temperature[]", "choosing.top_k[]"
FIRST, SECOND = "choosing.order[0,0]", "choosing.order[0,1]"
LOOP, COST = ".st-key-card_loop", ".st-key-card_cost"
PROMPT = ["今", "天", "天", "气", "真"]


def text(reader: Reader) -> list[str]:
    """The tokens of the growing text."""
    return reader.page.locator(".loop-text .piece").all_inner_texts()


def wait_while_playing(reader: Reader, length: int) -> None:
    """Wait until a text that grows by itself has come to so many tokens; it may be further when somebody looks."""
    reader.page.wait_for_function(
        "(length) => document.querySelectorAll('.loop-text .piece').length >= length", arg=length
    )


def wait_for_length(reader: Reader, length: int) -> None:
    """Wait until card and board both have a text of so many tokens."""
    reader.page.wait_for_function(
        """(length) => document.querySelectorAll(".loop-text .piece").length === length
          && document.querySelectorAll(".gb-strip .gb-token").length === length""",
        arg=length,
    )
    reader.wait_until_drawn("generating.u[" + str(length - len(PROMPT)) + "]")


def press(reader: Reader, key: str) -> None:
    reader.page.get_by_role("button", name=label(key, "en"), exact=True).click()


def slide(reader: Reader, key: str, *keys: str) -> None:
    """Put the focus on a labelled slider and press keys."""
    reader.page.locator(".gb-control", has_text=label(key, "en")).locator("input").focus()
    reader.press(*keys)


def test_tokens_stand_by_their_names_and_follow_an_edit(reader: Reader) -> None:
    reader.open("choosing", preset="today")
    reader.wait_until_drawn(FIRST)
    assert [reader.text(f"choosing.order[0,{rank}]") for rank in range(4)] == ["好", "棒", "差", "今"]
    reader.edit("choosing.ranked[0,0]", 11.0)
    assert reader.text(FIRST) == "好"
    reader.type("choosing.order[0,1]", "7168")
    reader.wait_for_number(SECOND, 7168)
    assert reader.text(SECOND) == "差"
    reader.type("choosing.order[0,1]", "60000")
    assert "60000" in reader.wait_for_text(".gb-message", "60000")
    assert reader.number(SECOND) == 7168


def test_sliders_of_whole_numbers_give_whole_numbers(reader: Reader) -> None:
    reader.open("choosing", preset="today")
    reader.wait_until_drawn(TOP_K)
    slide(reader, "slider_top_k", "Home")
    reader.wait_for_number(TOP_K, 1)
    assert reader.number("choosing.kept_k[0,1]") == float("-inf")
    assert reader.text("choosing.counts[0,0]") == "20"
    slide(reader, "slider_top_k", *["ArrowRight"] * 12)
    reader.wait_for_number(TOP_K, 13)
    reader.select(TOP_K)
    reader.page.locator(".gb-editor .gb-step").last.click()
    reader.wait_for_number(TOP_K, 14)


def test_temperature_zero_is_argmax_and_below_zero_is_refused(reader: Reader) -> None:
    reader.open("choosing", preset="today")
    reader.wait_until_drawn(TEMPERATURE)
    slide(reader, "slider_temperature", "Home")
    reader.wait_for_number(TEMPERATURE, 0)
    reader.wait_for_number("choosing.probabilities[0,0]", 1)
    assert reader.number("choosing.tempered[0,1]") == float("-inf")
    reader.type(TEMPERATURE, "-1")
    reader.wait_for_text(".gb-message", "between 0 and 1000")
    assert reader.number(TEMPERATURE) == 0


def test_a_hovered_rank_lights_what_it_is_made_of(reader: Reader) -> None:
    reader.open("choosing", preset="today")
    reader.wait_until_drawn(FIRST)
    reader.cell("choosing.mass_before[0,2]").hover()
    assert reader.marked("src") == {"choosing.shares[0,0]", "choosing.shares[0,1]"}
    assert reader.marked("feeds") == {"choosing.kept_p[0,2]"}
    reader.cell("choosing.probabilities[0,4]").hover()
    assert "choosing.running_sum[0,4]" in reader.marked("feeds")
    assert "choosing.running_sum[0,3]" not in reader.marked("feeds")


@pytest.mark.parametrize("language", LANGUAGES)
def test_steps_append_tokens_and_grey_what_a_cache_keeps(reader: Reader, language: str) -> None:
    reader.open("generating", preset="today", lang=language)
    wait_for_length(reader, 5)
    expect(reader.page.locator("tr.gb-muted")).to_have_count(0)
    assert text(reader) == PROMPT
    reader.page.get_by_role("button", name=label("loop_step", language), exact=True).click()
    wait_for_length(reader, 6)
    reader.wait_for_address(has="steps=1")
    # queries, keys, scores, weights, values and what they come to: five earlier rows each
    expect(reader.page.locator("tr.gb-muted")).to_have_count(30)
    expect(reader.page.locator("tr.gb-muted th").first).to_have_attribute("title", label("muted_row", language))
    expect(reader.page.locator(COST)).to_contain_text("1.8e−15", use_inner_text=True)
    reader.page.reload()
    wait_for_length(reader, 6)
    reader.page.get_by_role("button", name=label("loop_back", language), exact=True).click()
    wait_for_length(reader, 5)


def test_the_loop_plays_until_it_is_told_to_stop(reader: Reader) -> None:
    reader.open("generating", preset="today")
    wait_for_length(reader, 5)
    press(reader, "loop_play")
    wait_while_playing(reader, 7)
    press(reader, "loop_pause")
    reader.page.get_by_role("button", name=label("loop_play", "en"), exact=True).wait_for()
    length = len(text(reader))
    reader.page.wait_for_timeout(3000)
    assert len(text(reader)) == length


def test_the_loop_stops_at_its_bound(reader: Reader) -> None:
    reader.open("generating", preset="scratch", steps="30")
    wait_for_length(reader, 35)
    press(reader, "loop_play")
    wait_for_length(reader, 37)
    reader.wait_for_text(LOOP, "The loop stops here")
    reader.page.wait_for_timeout(2500)
    assert len(text(reader)) == 37
    assert reader.page.get_by_role("button", name=label("loop_play", "en"), exact=True).is_disabled()


def test_leaving_the_page_stops_the_loop(reader: Reader) -> None:
    reader.open("generating", preset="today")
    wait_for_length(reader, 5)
    press(reader, "loop_play")
    wait_while_playing(reader, 6)
    reader.go("choosing", FIRST)
    assert [chip.split()[:2] for chip in reader.tokens] == [
        ["今", "1024"], ["天", "2048"], ["天", "2048"], ["气", "3072"], ["真", "4096"],
    ]
    reader.page.wait_for_timeout(2500)
    # how far the loop had come when the page was left is not known
    reader.go("generating", f"{ATTENTION}.v_heads[0,0,0,0]")
    length = len(text(reader))
    reader.page.wait_for_timeout(2500)
    assert len(text(reader)) == length


def test_an_edit_makes_another_text_and_undo_brings_the_first_back(visit: Visit) -> None:
    reader = visit()
    reader.open("generating", preset="today", steps="8")
    wait_for_length(reader, 13)
    before = text(reader)
    slide(reader, "slider_temperature", "Home")
    reader.page.wait_for_function(
        "() => [...document.querySelectorAll('.loop-text .piece')].slice(5).every((piece) => piece.innerText === '好')"
    )
    reader.wait_for_number(TEMPERATURE, 0)
    reader.leave_everything()
    reader.press("Control+z")
    reader.wait_for_number(TEMPERATURE, 1)
    reader.page.wait_for_function("() => document.querySelectorAll('.loop-text .piece')[10].innerText !== '好'")
    assert text(reader) == before
    # another reader who opens the link sees the same text
    reader.wait_for_address(lacks="edits=")
    other = visit()
    other.visit(reader.page.url.removeprefix(reader.url))
    wait_for_length(other, 13)
    assert text(other) == before
