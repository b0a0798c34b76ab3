"""The address: the same state there and back, and the default with a message for anything broken."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any
from urllib.parse import parse_qsl

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine import Edit, presets, programs, run
from engine.bounds import LARGEST_SEED
from formats import edits as edit_links
from tests.ui.support import reader
from ui import runs
from ui.address import address, open_address
from ui.state import MODES, MOST_ROWS, Choices, State
from ui.switches import Switches, settled
from ui.text import LANGUAGES, say

WORDS = {
    "cats": ("Cats", "sit", "on", "mats", "0", "255"), "today": ("今天", "真", "好", "0", "50256"),
    "copy_machine": ("p", "lane", "0", "25"), "little_world": ("cats", "sit", "on", ".", "95"),
    "scratch": ("red", "fox", "they", "15"),
}
SIZES = {
    "cats": (256, 2, 2), "today": (50257, 1, 1), "copy_machine": (26, 2, 2), "little_world": (96, 2, 4),
    "scratch": (16, 2, 2),
}


def query(state: State) -> dict[str, str]:
    link = address(state)
    assert link.startswith("?")
    return dict(parse_qsl(link[1:], keep_blank_values=True, strict_parsing=True))


SWITCHES: tuple[Switches, ...] = (
    (), (("rope_pairing", "half"), ("norm", "layernorm"), ("bias", True)),
    (("positions", "learned"), ("causal", False), ("activation", "gelu_erf"), ("logit_soft_cap", 15.0)),
)


@st.composite
def readers(draw: st.DrawFn) -> State:
    preset = draw(st.sampled_from(presets.NAMES))
    vocabulary, layers, heads = SIZES[preset]
    text = " ".join(draw(st.lists(st.sampled_from(WORDS[preset]), min_size=1, max_size=16)))
    seed = draw(st.integers(0, LARGEST_SEED))
    choices = Choices(
        language=draw(st.sampled_from(LANGUAGES)), preset=preset, text=text, seed=seed,
        switches=settled(draw(st.sampled_from(SWITCHES)), presets.load(preset).config),
        layer=draw(st.integers(0, layers - 1)), head=draw(st.integers(0, heads - 1)), mode=draw(st.sampled_from(MODES)),
        rows=tuple(draw(st.lists(st.integers(0, vocabulary - 1), max_size=MOST_ROWS))),
    )
    state = State(choices)
    cells = st.sampled_from([name for name in state.trace if name != "input_ids"]).flatmap(
        lambda name: st.tuples(st.just(name), st.tuples(
            *(st.integers(0, size - 1) for size in state.trace[name].shape)
        ))
    )
    values = st.floats(-10, 10) | st.sampled_from([0.15, 1e300, -5e-324, 0.1 + 0.2])
    edits = tuple(Edit(name, index, draw(values)) for name, index in draw(st.lists(cells, max_size=4)))
    if edits:
        state.history, state.cursor = [(), edits], 1
    if draw(st.booleans()):
        state.choose(selected=draw(cells))
    return state


@settings(max_examples=40, deadline=None)
@given(readers())
def test_an_address_brings_the_state_back(state: State) -> None:
    back = open_address(query(state), None)
    tokenizer = state.model.tokenizer
    assert tokenizer is not None
    usual = tokenizer.decode(list(state.ids))
    assert back.message is None
    assert back.choices == replace(state.choices, text=usual)
    assert (back.edits, back.ids) == (state.edits, state.ids)
    state.choose(text=usual)
    assert address(back) == address(state)


def test_the_default_needs_the_language_alone() -> None:
    assert address(reader()) == "?lang=en"
    assert address(reader(preset="scratch", language="zh")) == "?lang=zh&preset=scratch"


@pytest.mark.parametrize("value", [0.15, 0.25, 2.5, 0.1 + 0.2, 1e-3, 1 / 3])
def test_a_link_keeps_the_float_that_was_set(value: float) -> None:
    """C06: 0.15 is 0.15 and not 0.15000000000000002."""
    state = reader()
    state.commit((Edit("layers.0.attention.Wq", (0, 0), value),))
    back = open_address(query(state), None)
    assert back.edits[0].value == value
    assert repr(float(back.trace["layers.0.attention.Wq"].data[0, 0])) == repr(value)


def test_undo_in_a_reopened_link_leads_to_the_baseline() -> None:
    state = reader()
    state.commit((Edit("layers.0.attention.Wq", (0, 0), 0.5),))
    back = open_address(query(state), None)
    back.move(-1)
    assert back.edits == ()


def test_inactive_edits_are_kept() -> None:
    """An edit of position 2 waits in the address while the sentence has one token."""
    late = Edit("embedding.output", (0, 2, 0), 0.5)
    state = State(Choices(text="on"), [(), (late,)], 1)
    back = open_address(query(state), None)
    assert (back.message, back.edits) == (None, (late,))


@pytest.mark.parametrize(("locale", "language"), [
    ("zh-CN", "zh"), ("zh", "zh"), ("ZH-tw", "zh"), ("en-GB", "en"), ("de-DE", "en"),
    (None, "en"), ("", "en"),
])
def test_without_a_language_the_browser_decides(locale: str | None, language: str) -> None:
    assert open_address({}, locale).choices == Choices(language=language)
    assert open_address({}, locale).message is None


def default(state: State) -> State:
    """The state that this one would be if its link had said nothing but the language."""
    return State(Choices(language=state.choices.language), message=state.message, session=state.session)


def link_with(edit: Edit) -> str:
    return edit_links.encode([edit])


GOOD = {
    "preset": "scratch", "text": "red fox", "seed": "7", "pairing": "half", "layer": "2", "head": "1",
    "mode": "delta", "rows": "3", "edits": link_with(Edit("layers.0.attention.Wq", (0, 1), 0.5)),
    "cell": "layers.0.attention.Wq~0.1",
}
BROKEN: list[dict[str, str]] = [
    {"preset": "foo"}, {"preset": ""}, {"preset": "CATS"},
    {"text": "Cats zebra on"}, {"text": ""}, {"text": "  , "}, {"text": "red " * 40}, {"text": "16"},
    {"text": "-1"}, {"text": "1e3"}, {"text": "NaN"}, {"text": "１６"}, {"text": "#16"}, {"text": "##1"},
    {"text": "#-1"}, {"text": "9" * 5000}, {"text": "-" + "9" * 5000}, {"text": "\0"},
    {"layer": "9"}, {"layer": "0"}, {"layer": "-1"}, {"layer": "3"}, {"layer": "NaN"}, {"layer": "1.0"},
    {"layer": ""}, {"layer": "١"}, {"layer": "9" * 400},
    {"head": "-1"}, {"head": "2"}, {"head": "two"}, {"head": "1e999"}, {"head": "²"},
    {"seed": "1e999"}, {"seed": "-1"}, {"seed": "10000"}, {"seed": "NaN"}, {"seed": "1_0"}, {"seed": " 7"},
    {"pairing": "thirds"}, {"mode": "x"},
    {"rows": "16"}, {"rows": "-1"}, {"rows": "a.b"}, {"rows": "1.5e3"}, {"rows": "NaN"}, {"rows": "0,1"},
    {"edits": "garbage"}, {"edits": "NaN"}, {"edits": "A" * 4000}, {"edits": "\ud800"},
    {"edits": GOOD["edits"][:-1]}, {"edits": link_with(Edit("no.such.tensor", (0,), 1.0))},
    {"edits": link_with(Edit("layers.0.attention.Wq", (8, 0), 1.0))},
    {"edits": link_with(Edit("layers.0.attention.Wq", (0, 0, 0), 1.0))},
    {"edits": link_with(Edit("layers.7.attention.Wq", (0, 0), 1.0))},
    {"edits": link_with(Edit("input_ids", (0, 0), 1.0))},
    {"cell": "nonsense"}, {"cell": ""}, {"cell": "~"}, {"cell": "logits"}, {"cell": "logits~0.0"},
    {"cell": "logits~0.0.16"}, {"cell": "logits~0.2.0"}, {"cell": "logits~0.-1.0"}, {"cell": "logits~NaN"},
    {"cell": "logits~0.0.0.0"}, {"cell": "norm_epsilon~0"}, {"cell": "logits~9999999999.0.0"},
    {"lang": "xx"}, {"lang": "EN"}, {"text": "red " * 2500}, {"unknown": "x" * 10_000},
]


def test_the_good_link_is_good() -> None:
    """Each broken link differs from this one in one place."""
    state = open_address({"lang": "zh", **GOOD}, None)
    assert state.message is None
    assert state.choices == Choices(
        "zh", "scratch", "red fox", 7, (("rope_pairing", "half"),), 1, 1, "delta", (3,),
        selected=("layers.0.attention.Wq", (0, 1)),
    )
    assert state.edits == (Edit("layers.0.attention.Wq", (0, 1), 0.5),)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: str(broken)[:40])
def test_a_broken_link_gives_the_default_and_says_so(broken: dict[str, str], language: str) -> None:
    """C12: never an exception, and nothing of the link is half applied."""
    state = open_address({"lang": language, **GOOD, **broken}, language)
    assert state.message is not None
    kind, words = state.message
    assert kind == "error"
    assert words.startswith(say(language, "broken_link", reason="").strip())
    assert state == default(state)
    assert state.choices.language == language
    assert address(state) == f"?lang={language}"
    assert len(words) < 7000


@pytest.mark.parametrize(("broken", "reason"), [
    ({"text": "red zebra"}, "zebra"), ({"text": "red 99"}, "99"), ({"text": "red " * 40}, "40"),
    ({"seed": "10000"}, "9999"), ({"edits": link_with(Edit("no.such.tensor", (0,), 1.0))}, "no.such.tensor"),
])
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_message_says_what_is_wrong(broken: dict[str, str], reason: str, language: str) -> None:
    state = open_address({"lang": language, **GOOD, **broken}, None)
    assert state.message is not None
    assert reason in state.message[1]


parameters = st.sampled_from([*GOOD, "lang"])
wild = st.text(max_size=30) | st.sampled_from(
    ["NaN", "-0", "1e999", "0.0.0", "~", "logits~0.0.0", "A" * 9000]
)


@settings(deadline=None)
@given(st.dictionaries(parameters, wild))
@example({"edits": edit_links.encode([Edit("causal_mask", (0, 0), -inf)])})
def test_no_address_is_too_strange(strange: dict[str, str]) -> None:
    """Either the link is taken whole, or the default is shown with a message."""
    state = open_address(strange, "en")
    address(state)
    if state.message is not None:
        assert state == default(state)


def test_the_first_rows_of_many_are_shown() -> None:
    state = open_address({"lang": "en", "rows": ".".join(map(str, range(20)))}, None)
    assert state.choices.rows == tuple(range(MOST_ROWS))


@pytest.mark.parametrize("text", [
    "12 45 78", "cats SIT on", "12,45;78", "[Cats]sit、on", "#12 #45 78", "１２，４５；７８", "＃１２　sit on",
])
def test_other_spellings_of_a_sentence_open_and_are_stored_in_the_usual_one(text: str) -> None:
    state = open_address({"lang": "en", "text": text}, None)
    assert state.message is None
    assert state.ids == (12, 45, 78)
    assert state.choices.text == "Cats sit on"
    assert address(state) == "?lang=en"


def test_every_cell_of_the_board_can_be_selected_by_address() -> None:
    state = reader()
    for name, tensor in state.trace.items():
        last: Any = tuple(size - 1 for size in tensor.shape)
        state.choose(selected=(name, last))
        assert open_address(query(state), None).choices.selected == (name, last)


def test_a_shared_link_gives_the_same_numbers() -> None:
    edits = (Edit("layers.0.attention.Wq", (0, 1), 0.5), Edit("layers.1.mlp.output", (0, 2, 3), -1.25))
    state = State(Choices(), [(), edits], 1)
    expected = run(runs.model("cats", 1, ()), "Cats sit on", edits=edits, program=programs.lessons)
    opened = open_address(query(state), None).trace
    assert all(opened[name].data.tobytes() == expected[name].data.tobytes() for name in expected)
