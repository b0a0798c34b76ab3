"""Lesson 14 in a browser: merges stepped by keys, texts that stay texts, and files of the reader's own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import FilePayload, expect
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from tests.browser.conftest import Visit
from tests.browser.support import LANGUAGES, Reader, label

ID = "input_ids[0,0]"
LEARN, APPLY, OWN = (f".st-key-card_tokens_{name}" for name in ("learn", "apply", "own"))


def words(reader: Reader, selector: str) -> str:
    return " ".join(reader.page.inner_text(selector).split())


def line(reader: Reader, place: str, css: str) -> list[str]:
    """The cells of one line of a card's staves."""
    return reader.page.locator(f"{place} .stave td.{css}").all_inner_texts()


def press(reader: Reader, key: str, merges: int) -> None:
    """Press a button of the stepper, which has the focus, and wait for that merge."""
    reader.press("Enter")
    reader.wait_for_text(f"{LEARN} .card-status", rf"^{merges} of ")
    assert reader.page.evaluate("document.activeElement.innerText") == label(key, "en")


def write(reader: Reader, place: str, text: str) -> None:
    """Put a text into a card's field and take it over by the keyboard."""
    field = reader.page.locator(f"{place} textarea")
    field.fill(text)
    field.press("Control+Enter")


def test_merges_are_stepped_by_the_keyboard(reader: Reader) -> None:
    """Each step is in the address, is applied below at once, and comes back with the link; the board stays."""
    reader.open("tokens", preset="today")
    reader.wait_until_drawn(ID)
    assert line(reader, ".st-key-card_tokens_sentence", "stave-byte")[:3] == ["e4", "bb", "8a"]
    reader.page.get_by_role("button", name=label("merge_next", "en")).focus()
    for merges in (1, 2, 3):
        press(reader, "merge_next", merges)
    reader.wait_for_address(has="merges=3")
    assert "天" in line(reader, LEARN, "piece")
    assert line(reader, APPLY, "stave-id").count("257") == 1
    reader.press("Shift+Tab")
    press(reader, "merge_back", 2)
    reader.wait_for_address(has="merges=2")

    # an edit of the board leaves the cards as they are, and the cards leave the edit
    reader.edit("embedding.weight[1024,0]", 0.75)
    press_next = reader.page.get_by_role("button", name=label("merge_next", "en"))
    press_next.click()
    reader.wait_for_address(has="merges=3")
    reader.wait_for_edits({"embedding.weight[1024,0]": 0.75})
    shown, query = words(reader, LEARN), reader.query
    reader.page.reload()
    reader.wait_until_drawn(ID)
    assert (words(reader, LEARN), reader.query) == (shown, query)
    assert reader.number("embedding.weight[1024,0]") == 0.75

    reader.go("embedding", "embedding.output[0,0,0]")
    reader.go("tokens", ID)
    assert words(reader, LEARN) == shown


def test_texts_stay_texts(visit: Visit) -> None:
    """What would be HTML, Markdown or LaTeX elsewhere; spaces and ends of lines; bytes that are no character."""
    first = visit()
    first.open("tokens", merges="60")
    text = "<b>x</b>\n*y* $z$ 😀\u202e <script>document.title='!'</script>"
    write(first, APPLY, text)
    first.wait_for_address(has="sample=")
    shown = "".join(line(first, APPLY, "stave-character"))
    assert shown == text.replace(" ", "␣").replace("\n", "↵").replace("\u202e", "U+202E")
    expect(first.page.locator(f"{APPLY} .stave :is(b, em, script, .katex)")).to_have_count(0)
    assert " f0 9f 98 80 " in " ".join(line(first, APPLY, "piece"))
    assert "\ufffd" not in words(first, APPLY)

    write(first, LEARN, "xyxy")
    # another text is learned on from its bytes
    first.wait_for_text(f"{LEARN} .card-status", "^0 of 1 merges")
    assert "low" not in line(first, APPLY, "piece")
    first.wait_for_address(has="corpus=xyxy")

    second = visit()
    second.page.goto(first.page.url)
    second.wait_until_drawn(ID)
    assert line(second, APPLY, "piece") == line(first, APPLY, "piece")
    expect(second.page.locator(f"{APPLY} textarea")).to_have_value(text)


def files(content: bytes, name: str = "tokenizer.json") -> FilePayload:
    return {"name": name, "mimeType": "application/json", "buffer": content}


@pytest.fixture(scope="module")
def library() -> Tokenizer:
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.train_from_iterator(["slowest 今天 今天"], trainers.BpeTrainer(
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False,
    ))
    return made


def deliver(reader: Reader, *chosen: FilePayload) -> None:
    """Choose files and wait for the answer."""
    before = words(reader, OWN)
    reader.page.set_input_files(f"{OWN} input[type=file]", list(chosen))
    reader.page.wait_for_function(
        "([place, before]) => document.querySelector(place).innerText.split(/\\s+/).join(' ').trim() !== before"
        " && !document.querySelector(`${place} output`).textContent",
        arg=[OWN, before],
    )


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_tokenizer_of_one_s_own(reader: Reader, library: Tokenizer, language: str) -> None:
    """It splits the reader's text; a wrong file says why in the reader's language and takes nothing away."""
    reader.open("tokens", lang=language, preset="today", merges="4")
    reader.wait_until_drawn(ID)
    reader.edit("embedding.weight[1024,0]", 0.75)
    reader.wait_for_address(has="edits=")
    query = reader.query
    deliver(reader, files(library.to_str().encode()))
    text = reader.page.locator(f"{APPLY} textarea").input_value()
    expected = list(map(str, library.encode(text).ids))
    assert line(reader, OWN, "stave-id") == expected

    deliver(reader, files(b'{"model": ', "broken.json"))
    refusal = reader.page.inner_text(f"{OWN} .card-refusal")
    assert refusal == json.loads(json.dumps(label("file_not_json", language))).format(
        name="broken.json", line=1, column=11
    )
    assert line(reader, OWN, "stave-id") == expected
    reader.wait_for_query(query)
    assert reader.number("embedding.weight[1024,0]") == 0.75

    # too large is said in the browser, and nothing is sent
    reader.page.set_input_files(f"{OWN} input[type=file]", [files(bytes(17 * 2**20), "weights.bin")])
    told = reader.wait_for_text(f"{OWN} output", "16 MB")
    assert told == label("file_too_large", language).format(most=16)
    assert line(reader, OWN, "stave-id") == expected

    vocabulary = json.dumps(library.get_vocab()).encode()
    merges = "\n".join(" ".join(pair) for pair in json.loads(library.to_str())["model"]["merges"]).encode()
    deliver(reader, files(vocabulary, "vocab.json"))
    # the words on the large file go before the answer comes
    reader.wait_for_text(f"{OWN} .card-refusal", "merges\\.txt")
    deliver(reader, files(vocabulary, "vocab.json"), files(merges, "merges.txt"))
    reader.wait_for_text(OWN, "vocab\\.json \\+ merges\\.txt")
    assert line(reader, OWN, "stave-id") == expected

    write(reader, APPLY, "今今天")
    reader.wait_for_address(has="sample=")
    reader.page.wait_for_function("(place) => document.querySelectorAll(`${place} .stave-byte`).length === 9", arg=OWN)
    assert line(reader, OWN, "stave-id") == list(map(str, library.encode("今今天").ids))
    reader.page.get_by_role("button", name=label("own_remove", language)).click()
    reader.page.wait_for_function("(place) => !document.querySelector(`${place} .stave`)", arg=OWN)


def test_a_phone_shows_all_of_it(visit: Visit, tmp_path: Path) -> None:
    """Nothing is wider than the screen, however long the text and its words."""
    phone = visit(viewport={"width": 390, "height": 844}, has_touch=True)
    phone.open("tokens", preset="today", merges="25", sample="今" * 40 + "x" * 60, corpus="天气" * 60 + "low" * 40)
    phone.wait_until_drawn(ID)
    assert phone.page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth <= innerWidth")
    wide = phone.page.evaluate("""() => [...document.querySelectorAll("[class*=st-key-card_] :is(.stave-text, p)")]
      .filter((node) => node.getBoundingClientRect().right > innerWidth).length""")
    assert wide == 0
