"""The address brings a screen back, anywhere; broken ones do no harm; readers do not meet one another."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect

from engine import Edit
from formats import edits as edit_links
from tests.browser.conftest import Visit
from tests.browser.support import ATTENTION, PAGES, Reader, Server, label, lesson_title, running_server

WQ01 = f"{ATTENTION}.Wq[0,1]"
DEFAULT_TOKENS = ["Cats 12", "sit 45", "on 78"]


def screen(reader: Reader) -> dict[str, object]:
    """Everything that a reader would call the same screen."""
    return {
        "url": reader.page.url, "title": reader.page.inner_text("h1"), "tokens": reader.tokens,
        "numbers": repr(reader.numbers()), "formula": reader.formula(),
        "marks": [reader.marked(f"gb-{mark}") for mark in ("selected", "edited", "changed")],
        "prediction": reader.in_strip(".gb-strip-prediction").inner_text(),
        "places": reader.in_strip("select").evaluate_all("(all) => all.map((each) => each.value)"),
        "mode": reader.in_strip(".gb-modes input:checked").get_attribute("value"),
        "texts": reader.page.locator(".gb-board td[data-ref]").all_inner_texts(),
        "editor": reader.page.locator(".gb-editor .gb-number").input_value(),
    }


def test_a_link_opens_the_same_screen_elsewhere(visit: Visit) -> None:
    """Language, sentence, lesson, layer, head, mode, selected cell, rows and edits, in a fresh browser."""
    first = visit()
    first.open("scores", lang="zh")
    first.write_sentence("mats sit cats on sit")
    first.wait_for_tokens("mats 90", "sit 45", "Cats 12", "on 78", "sit 45")
    first.in_strip("select").nth(0).select_option("1")
    first.wait_until_drawn("layers.1.attention.Wq[0,0]")
    first.in_strip("select").nth(1).select_option("1")
    first.wait_until_drawn("layers.1.attention.scores[0,1,4,4]")
    first.edit("layers.1.attention.Wq[2,3]", 0.1 + 0.2)
    first.edit("layers.1.attention.scores[0,1,4,2]", -1.25)
    first.in_strip(".gb-mode").nth(2).click()
    first.wait_for_address(has="mode=both")
    first.select("layers.1.attention.scores[0,1,4,2]")

    second = visit()
    second.page.goto(first.page.url)
    second.wait_until_drawn("layers.1.attention.scores[0,1,4,4]")
    assert screen(second) == screen(first)
    second.wait_for_edits({"layers.1.attention.Wq[2,3]": 0.1 + 0.2, "layers.1.attention.scores[0,1,4,2]": -1.25})
    second.leave_everything()
    second.press("Control+z")
    second.wait_for_number("layers.1.attention.Wq[2,3]", 0.0)
    assert first.number("layers.1.attention.Wq[2,3]") == 0.1 + 0.2


def test_two_readers_at_once(visit: Visit) -> None:
    """Two sessions of one server, on the same lesson: neither sees the other's edits, sentence or language."""
    one, two = visit(), visit()
    one.open("scores")
    two.open("scores", lang="zh")
    untouched = two.numbers()
    one.edit(WQ01, 0.5)
    two.edit(f"{ATTENTION}.Wk[0,0]", 3.0)
    one.edit("causal_mask[0,1]", 0.0)
    one.wait_for_edits({WQ01: 0.5, "causal_mask[0,1]": 0.0})
    two.wait_for_edits({f"{ATTENTION}.Wk[0,0]": 3.0})
    assert two.number(WQ01) == untouched[WQ01]
    assert two.number("causal_mask[0,1]") == float("-inf")
    one.write_sentence("on on")
    one.wait_for_tokens("on 78", "on 78")
    assert two.tokens == DEFAULT_TOKENS
    two.in_strip(".gb-strip-history button").nth(2).click()
    two.wait_for_number(f"{ATTENTION}.Wk[0,0]", 1.0)
    assert two.numbers() == untouched
    one.wait_for_edits({WQ01: 0.5, "causal_mask[0,1]": 0.0})
    third = visit()
    third.open("scores")
    assert third.numbers() == untouched


def test_twenty_edits_in_a_short_address(reader: Reader) -> None:
    """Twenty edits of one tensor and of several stay under 400 characters, path and all."""
    edits = [Edit(f"{ATTENTION}.W{'qk'[n % 2]}", (n // 2 % 4, n % 4), round(0.37 * n - 2, 2)) for n in range(8)]
    edits += [Edit(f"layers.1.attention.W{'vo'[n % 2]}", (n // 2 % 4, n % 4), round(1.01 * n, 2)) for n in range(1, 9)]
    edits += [Edit("embedding.weight", (45, n), n / 8 + 0.0625) for n in range(4)]
    assert len({(edit.name, edit.index) for edit in edits}) == 20
    reader.open("scores", edits=edit_links.encode(edits))
    assert reader.in_strip(".gb-edit-count").inner_text().endswith("20")
    path = reader.page.url.removeprefix(reader.url)
    assert len(path) < 400
    assert edit_links.decode(reader.query["edits"]) == tuple(edits)


# one of each kind; `ui/test_address.py` has them all
BROKEN = {
    "foreign language": {"lang": "xx"}, "not text": {"edits": "\x00é漢"},
    "damaged": {"edits": edit_links.encode([Edit(f"{ATTENTION}.Wq", (0, 1), 0.5)])[:-1]},
    "no such tensor": {"edits": edit_links.encode([Edit("layers.7.nothing", (0,), 1.0)])},
    "cell outside": {"cell": "logits~0.2.999"}, "layer 9": {"layer": "9"}, "preset": {"preset": "gpt-5"},
    "unknown word": {"text": "dog"}, "10 kB": {"text": "on " * 3400}, "10 kB of edits": {"edits": "A" * 10_000},
}


def test_broken_links(reader: Reader) -> None:
    """A broken or foreign link opens the default with a message, on the lesson that it names."""
    for name, query in BROKEN.items():
        reader.visit(f"/scores?{urlencode({'lang': 'zh', **query})}")
        language = "en" if query.get("lang") == "xx" else "zh"
        message = reader.message()
        assert message, name
        assert label("broken_link", language).split("{")[0].strip() in message, name
        expect(reader.page.locator("h1"), name).to_have_text(lesson_title("scores", language), use_inner_text=True)
        assert reader.tokens == DEFAULT_TOKENS, name
        assert reader.text(f"{ATTENTION}.weights[0,0,2,1]") == "0.5376", name
        reader.wait_for_query({"lang": language})
    reader.page.click(".gb-message button")
    reader.page.wait_for_function("document.querySelector('.gb-message').hidden")


def test_unknown_parameters_and_repeated_ones(reader: Reader) -> None:
    """What is not ours is passed over; of a repeated parameter one is taken, and nothing fails."""
    reader.visit("/scores?lang=en&utm_source=mail&layer=1&layer=2&edits=")
    assert reader.message() is None
    assert reader.tokens == DEFAULT_TOKENS


def test_unknown_path(reader: Reader) -> None:
    """A page that does not exist: the first lesson, and a word about it."""
    reader.complaints.probes |= {f"{reader.url}/nope/_stcore/{name}" for name in ("health", "host-config")}
    reader.page.goto(f"{reader.url}/nope?lang=zh")
    reader.wait_until_drawn("embedding.output[0,2,0]")
    expect(reader.page.locator("h1")).to_have_text(lesson_title("overview", "zh"), use_inner_text=True)
    said = reader.message() or ""
    dialog = reader.page.locator("[role=dialog]")
    assert said or dialog.count(), "something has to say that there is no such page"
    # Streamlit says so on the console as well
    assert [each for each in reader.complaints.messages if "does not seem to exist" not in each] == []
    reader.complaints.messages.clear()


@pytest.mark.parametrize("path", ["/scores", "/"])
def test_first_visitor_of_a_fresh_server(visit: Visit, path: str) -> None:
    """Whoever comes first gets what they asked for, also at a lesson's own address with edits in it."""
    edit = Edit(f"{ATTENTION}.Wq", (0, 1), 0.5)
    with running_server(f"fresh-{path.strip('/') or 'root'}") as fresh:
        reader = visit(fresh.url)
        reader.visit(f"{path}?{urlencode({'lang': 'zh', 'edits': edit_links.encode([edit])})}")
        title = lesson_title(path.strip("/") or "overview", "zh")
        expect(reader.page.locator("h1")).to_have_text(title, use_inner_text=True)
        expect(reader.page.locator('[data-testid="stSidebarNav"] a')).to_have_count(len(PAGES))
        reader.wait_for_edits({WQ01: 0.5})
        expect(reader.in_strip(".gb-edit-count")).to_contain_text("1", use_inner_text=True)
        if path == "/":
            reader.go("scores", WQ01)
        assert reader.number(WQ01) == 0.5
        reader.edit(WQ01, 0.25)
        reader.go("qkv", WQ01)
        assert reader.number(WQ01) == 0.25
        assert "Traceback" not in fresh.new_log()
        reader.page.goto("about:blank")


def test_restarted_server(visit: Visit) -> None:
    """The server goes away under an open page and comes back: the same screen, with the edits."""
    server = Server("restarted")
    server.start()
    try:
        reader = visit(server.url)
        reader.open("scores", lang="zh")
        reader.edit(WQ01, 0.1 + 0.2)
        reader.edit(f"{ATTENTION}.weights[0,0,2,1]", 0.25)
        reader.select(f"{ATTENTION}.scores[0,0,2,1]")
        before = screen(reader)
        reader.page.evaluate("""() => {
          const app = document.querySelector(".stApp");
          new MutationObserver(() => {
            const { testConnectionState: connection, testScriptState: script } = app.dataset;
            if (connection !== "CONNECTED") window.wasAway = true;
            else if (window.wasAway && script === "running") window.hasRunAgain = true;
          }).observe(app, { attributes: true });
        }""")
        server.stop()
        reader.page.wait_for_function("window.wasAway")
        server.start()
        reader.page.wait_for_function(
            "window.hasRunAgain && document.querySelector('.stApp').dataset.testScriptState === 'notRunning'",
            timeout=60_000,
        )
        # while the server is away the browser cannot but complain that it does not answer
        reader.complaints.messages.clear()
        # the new server's answer to a click, after which everything on the page comes from it
        reader.in_strip(".gb-mode").nth(2).click()
        reader.wait_for_address(has="mode=both")
        reader.in_strip(".gb-mode").nth(0).click()
        reader.wait_for_address(lacks="mode=both")
        reader.wait_until_drawn(WQ01)
        assert screen(reader) == before
        reader.edit(f"{ATTENTION}.Wq[1,1]", 2.0)
        reader.wait_for_edits({WQ01: 0.1 + 0.2, f"{ATTENTION}.weights[0,0,2,1]": 0.25, f"{ATTENTION}.Wq[1,1]": 2.0})
        reader.go("qkv", WQ01)
        assert reader.number(WQ01) == 0.1 + 0.2
        assert "Traceback" not in server.new_log()
        reader.page.goto("about:blank")
    finally:
        server.stop()


def test_links_of_the_picture_and_the_navigation_keep_the_state(reader: Reader) -> None:
    """By every way to another lesson the address keeps what it held."""
    edit = Edit("embedding.weight", (45, 1), 0.75)
    reader.open(text="sit on", layer="2", edits=edit_links.encode([edit]))
    query = reader.query
    reader.page.locator(".gb-flow button.gb-flow-title").nth(1).click()
    reader.arrive("embedding", "embedding.weight[45,1]")
    reader.wait_for_query(query)
    reader.in_strip(".gb-strip-lessons button").nth(1).click()
    reader.arrive("layer", "layers.1.residual1[0,1,0]")
    reader.wait_for_query(query)
    reader.go("mlp", "layers.1.mlp.W_up[0,0]")
    reader.wait_for_query(query)
    reader.page.go_back()
    reader.arrive("layer", "layers.1.residual1[0,1,0]")
    assert reader.tokens == ["sit 45", "on 78"]
    reader.wait_for_edits({"embedding.weight[45,1]": 0.75})
