"""A trained preset: a sentence from the sidebar, the head that goes back to the subject, words in Chinese below."""

from __future__ import annotations

from playwright.sync_api import expect

from engine import presets, run
from tests.browser.support import Reader

SENTENCE = presets.EXAMPLES["little_world"]["agreement"]
WEIGHTS = "layers.1.attention.weights"


def test_a_sentence_from_the_sidebar_and_its_words_in_chinese(reader: Reader) -> None:
    card = presets.card("little_world")
    assert card is not None
    _, head = card.heads["subject"][0]
    reader.open("scores", preset="little_world", layer="2", head=str(head))
    expect(reader.page.locator(".gb-gloss")).to_have_count(0)
    reader.page.get_by_role("button", name=SENTENCE).click()
    reader.wait_until_drawn(f"{WEIGHTS}[0,{head},4,1]")
    reader.wait_for_address(has="text=the+cat+with+the+dogs")
    weight = run(presets.load("little_world"), SENTENCE)[WEIGHTS].data[0, head, 4, 1]
    assert reader.number(f"{WEIGHTS}[0,{head},4,1]") == weight > 0.9

    reader.page.get_by_role("button", name="中文").click()
    expect(reader.in_strip(".gb-token .gb-gloss")).to_have_text(["这", "猫", "和", "这", "狗（复）"])
    expect(reader.in_strip(".gb-top .gb-gloss")).to_have_count(1)
    row = reader.cell(f"{WEIGHTS}[0,{head},4,1]").locator("xpath=..").locator("th .gb-gloss")
    expect(row).to_have_text("狗（复）")
    reader.go("embedding", "embedding.weight[3,0]")
    expect(reader.cell("embedding.weight[3,0]").locator("xpath=..").locator("th")).to_have_text("dogs 3狗（复）")
