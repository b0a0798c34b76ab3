"""Lesson 14's cards: what they show for a state, their controls and addresses, and a reader's own tokenizer."""

from __future__ import annotations

import html
import re
from base64 import b64encode
from pathlib import Path
from string import Formatter
from urllib.parse import parse_qsl

import pytest
from streamlit.testing.v1 import AppTest
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from engine import byte_pairs, presets
from formats.tokenizer_files import FileError
from tests.ui.support import ROOT, is_chinese, on_page, opened, state_of
from ui import token_cards
from ui.address import address, open_address
from ui.text import LANGUAGES, catalogue, say
from ui.tokenizer_desk import Desk

FIXTURES = sorted((ROOT / "formats").glob("tokenizer_*.py"))


def lesson(**query: str) -> AppTest:
    app = opened(**{"lang": "en", "preset": "today", **query})
    on_page(app, "tokens")
    return app


def card(app: AppTest, title: str) -> str:
    """The HTML of a card: all that follows its title up to the next one."""
    pieces = [element.proto.body for element in app.get("html")]
    start = next(place for place, piece in enumerate(pieces) if "card-title" in piece and title in piece)
    end = next((place for place, piece in enumerate(pieces) if place > start and "card-title" in piece), len(pieces))
    return "".join(pieces[start:end])


def words(markup: str) -> str:
    """What is read in HTML."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", markup)).split())


def drawn(markup: str, line: str) -> list[str]:
    """The cells of one line of the staves."""
    return [html.unescape(cell) for cell in re.findall(rf'<td class="{line}[^>]*>(.*?)</td>', markup)]


def press(app: AppTest, key: str) -> None:
    app.button(key=f"{key}_en").click().run()
    assert not app.exception


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("preset", presets.NAMES)
def test_every_preset_in_both_languages(preset: str, language: str) -> None:
    app = lesson(lang=language, preset=preset)
    sentence = card(app, say(language, "tokens_sentence"))
    assert say(language, f"tokens_of_{preset}") in words(sentence)
    for title in ("tokens_learn", "tokens_apply", "tokens_own"):
        assert is_chinese(words(card(app, say(language, title)))) or language == "en"


def test_the_article_s_tokens_and_gpt2_s() -> None:
    sentence = card(lesson(), "The sentence of this model")
    assert drawn(sentence, "stave-id") == [
        "1024", "2048", "2048", "3072", "4096", "20015", "232", "25465", "25465", "36365", "242", "40367", "253",
    ]
    assert drawn(sentence, "stave-byte")[:3] == ["e4", "bb", "8a"]
    assert drawn(sentence, "piece") == [*"今天天气真", "e4 bb", "8a", "天", "天", "e6 b0", "94", "e7 9c", "9f"]
    assert "8 tokens" in words(sentence)


def test_letters_are_tokens_and_gpt2_s_are_left_out() -> None:
    sentence = card(lesson(preset="copy_machine"), "The sentence of this model")
    assert drawn(sentence, "piece") == list("planetplan")
    assert "GPT-2" not in words(sentence)
    sentence = card(lesson(preset="little_world"), "The sentence of this model")
    assert drawn(sentence, "stave-id") == ["1", "20", "30", "24619", "1650", "319"]


def test_ids_without_a_word_have_no_bytes_and_no_gpt2() -> None:
    sentence = card(lesson(preset="cats", text="sit 7"), "The sentence of this model")
    assert drawn(sentence, "stave-id") == ["45", "7"]
    assert drawn(sentence, "stave-character") == ["s", "i", "t", "#7"]
    assert drawn(sentence, "stave-none") == ["—"]
    assert "GPT-2" not in words(sentence)


def test_stepping() -> None:
    """Forward, to the end, back and to the start; what is learned is applied at once and is in the address."""
    app = lesson()
    title, applied = "Learn: count, merge, repeat", "Apply: from a text to ids"
    assert words(card(app, title)).startswith(title)
    assert "0 of 25 merges, 256 tokens" in words(card(app, title))
    assert "Next: a4 + a9 stands in the text 5 times and becomes token 256." in words(card(app, title))
    assert "15 characters, 26 bytes, 26 tokens." in words(card(app, applied))
    assert [app.button(key=f"{key}_en").disabled for key in ("merge_first", "merge_back")] == [True, True]

    press(app, "merge_next")
    press(app, "merge_next")
    assert state_of(app).control("merges") == 2
    assert "merges=2" in address(state_of(app))
    assert "天" in drawn(card(app, title), "piece")
    assert "15 characters, 26 bytes, 24 tokens." in words(card(app, applied))
    press(app, "merge_last")
    assert "No pair stands in the text twice any more" in words(card(app, title))
    assert [app.button(key=f"{key}_en").disabled for key in ("merge_next", "merge_last")] == [True, True]
    assert drawn(card(app, applied), "piece")[:6] == ["s", "low", "est", "␣", "今天", "␣"]
    press(app, "merge_back")
    assert state_of(app).control("merges") == 24
    press(app, "merge_first")
    assert "merges=" not in address(state_of(app))


def test_a_link_opens_on_the_same_merge_and_texts() -> None:
    app = lesson(corpus="ab ab\nab", merges="1", sample="cab <b>")
    learning = card(app, "Learn: count, merge, repeat")
    assert app.text_area(key="corpus_en").value == "ab ab\nab"
    assert app.text_area(key="sample_en").value == "cab <b>"
    assert drawn(learning, "piece") == ["ab", "␣", "ab", "↵", "ab"]
    applied = card(app, "Apply: from a text to ids")
    assert drawn(applied, "piece") == ["c", "ab", "␣", "<", "b", ">"]
    assert drawn(applied, "stave-id") == ["99", "256", "32", "60", "98", "62"]


def test_texts_of_the_reader() -> None:
    app = lesson(merges="9")
    app.text_area(key="corpus_en").set_value("xyxy").run()
    app.text_area(key="sample_en").set_value("今😀").run()
    assert not app.exception
    state = state_of(app)
    assert (state.control("corpus"), state.control("sample")) == ("xyxy", "今😀")
    # merges learned on another text are none of this one's
    assert state.control("merges") == 0
    assert "0 of 1 merges" in words(card(app, "Learn: count, merge, repeat"))
    assert drawn(card(app, "Apply: from a text to ids"), "piece") == ["e4", "bb", "8a", "f0", "9f", "98", "80"]
    again = open_address(dict(parse_qsl(address(state).removeprefix("?"))), None)
    assert again.choices.controls == state.choices.controls


@pytest.mark.parametrize("text", ["", " ", "\n\n"])
def test_texts_of_nothing(text: str) -> None:
    app = lesson(corpus=text, sample=text)
    told = "No pair stands in the text twice" if text.strip(" ") else "There are no neighbours to merge"
    assert told in words(card(app, "Learn: count, merge, repeat"))
    assert f"{len(text)} tokens" in words(card(app, "Apply: from a text to ids"))


@pytest.mark.parametrize("query", [
    {"corpus": "x" * 601}, {"sample": "x" * 201}, {"merges": "61"}, {"merges": "-1"}, {"merges": "1.5"},
    {"sample": "\ud800"},
])
def test_a_link_with_what_no_control_can_be(query: dict[str, str]) -> None:
    state = open_address({"lang": "en", **query}, None)
    assert state.message is not None
    assert state.choices.controls == ()


def test_the_largest_text_that_fits() -> None:
    """Six hundred characters of four bytes: every step is kept, and as many merges as the page has."""
    steps = token_cards.learning("😀" * 600)
    assert len(steps[0].chunks[0]) == 2400
    assert len(steps) <= token_cards.MOST_MERGES + 1
    assert len(token_cards.learned("abcdefghij" * 60, 60)) == len(token_cards.learning("abcdefghij" * 60))


def test_learning_that_this_page_does_not_finish() -> None:
    text = " ".join(f"{first}{second}" for first in "abcdefgh" for second in "abcdefgh") * 2
    assert len(list(byte_pairs.learn(text, 200))) > token_cards.MOST_MERGES + 1
    app = lesson(corpus=text, merges="60")
    assert "This page stops after 60 merges" in words(card(app, "Learn: count, merge, repeat"))
    assert app.button(key="merge_next_en").disabled


def test_a_link_without_controls_shows_the_cards_alone() -> None:
    app = lesson(hide="controls", merges="2")
    assert not app.text_area
    assert [button for button in app.button if str(button.key).startswith("merge_")] == []
    assert "2 of 25 merges" in words(card(app, "Learn: count, merge, repeat"))


# ---- the reader's own tokenizer

def own_file() -> bytes:
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.train_from_iterator(["slowest slowest"], trainers.BpeTrainer(
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False,
    ))
    return made.to_str().encode()


def delivered(content: bytes, name: str = "tokenizer.json") -> list[dict[str, str]]:
    return [{"name": name, "content": b64encode(content).decode()}]


def test_a_tokenizer_is_kept_until_another_one_loads() -> None:
    app = lesson()
    desk = state_of(app).desk
    assert "own_remove_en" not in [button.key for button in app.button]
    desk.receive(delivered(own_file()), "a")
    app.run()
    shown = card(app, "Your own tokenizer")
    size = Tokenizer.from_str(own_file().decode()).get_vocab_size()
    assert f"tokenizer.json : BPE, {size} tokens in the vocabulary." in words(shown)
    assert drawn(shown, "piece")[0] == "slowest"
    # one for the known word, one for every byte of the rest
    assert words(shown).endswith(" 20 tokens.")
    kept, before = desk.tokenizer, address(state_of(app))

    desk.receive(delivered(b"{", "broken.json"), "a")
    app.run()
    assert desk.tokenizer is kept
    assert "broken.json is not valid JSON: line 1, column 2" in words(card(app, "Your own tokenizer"))
    assert drawn(card(app, "Your own tokenizer"), "piece")[0] == "slowest"
    assert address(state_of(app)) == before

    app.button(key="own_remove_en").click().run()
    assert (desk.tokenizer, desk.refusal) == (None, None)
    assert "BPE" not in words(card(app, "Your own tokenizer"))


def test_a_vocabulary_of_characters_stands_below_characters() -> None:
    made = Tokenizer(models.WordPiece({"[UNK]": 0, "slow": 1, "##est": 2}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    app = lesson(sample="slowest <i>")
    state_of(app).desk.receive(delivered(made.to_str().encode()), "a")
    app.run()
    shown = card(app, "Your own tokenizer")
    assert drawn(shown, "stave-character") == ["slow", "est", "␣", "<", "i", ">"]
    assert drawn(shown, "piece") == ["slow", "##est", "[UNK]", "[UNK]", "[UNK]"]
    assert drawn(shown, "stave-byte") == []


def test_a_text_that_the_tokenizer_fails_on() -> None:
    made = Tokenizer(models.WordLevel({"a": 0}, unk_token="[UNK]"))
    app = lesson(lang="zh")
    state_of(app).desk.receive(delivered(made.to_str().encode()), "a")
    app.run()
    shown = words(card(app, say("zh", "tokens_own")))
    assert "tokenizers 库报告：WordLevel error" in shown


def test_what_the_browser_sends_amiss() -> None:
    desk = Desk()
    desk.receive([], "a")
    assert desk.refusal is not None
    assert desk.refusal.code == "count"
    desk.receive(delivered(b"", "x" * 500), "a")
    assert desk.refusal.details == {"name": "x" * 60}
    assert desk.deliveries == 2


def refusals(source: Path) -> dict[str, set[str]]:
    """Code → facts of every refusal in a module."""
    found = re.findall(r'(?:FileError|RefusalError)\("(\w+)"((?:[^()]|\([^()]*(?:\([^()]*\))?[^()]*\))*)\)',
                       source.read_text(encoding="utf-8"))
    return {code: set(re.findall(r"\b(\w+)=", facts)) for code, facts in found}


def test_every_refusal_has_words_made_of_its_facts() -> None:
    codes: dict[str, set[str]] = {}
    for source in FIXTURES:
        codes |= refusals(source)
    assert len(codes) > 15
    told = {key.removeprefix("file_") for key in catalogue("en") if key.startswith("file_")}
    assert told == set(codes)
    for language in LANGUAGES:
        for code, facts in codes.items():
            template = catalogue(language)[f"file_{code}"]
            assert {name for _, name, _, _ in Formatter().parse(template) if name} <= facts, code
            assert "{" not in template or facts


def test_words_of_a_refusal_are_text() -> None:
    shown = token_cards.refusal("en", FileError("empty", name="<b>{x}</b>"))
    assert "&lt;b&gt;{x}&lt;/b&gt;" in shown
