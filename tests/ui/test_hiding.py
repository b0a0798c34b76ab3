"""What a link leaves out is not on the page, and does nothing."""

from __future__ import annotations

from typing import Any

import pytest

from engine import Edit
from tests.ui.support import alive, framed, lessons, reader, send
from ui import hiding, navigation
from ui.address import address, open_address
from ui.events import HANDLERS
from ui.layout import Slider, Switch, grid, op, optional, section
from ui.state import State
from ui.text import LANGUAGES, say

WQ = "layers.0.attention.Wq"
EDIT = {"tensor": WQ, "index": [0, 1], "value": 0.5}
# what can be hidden → an event of it, and what the event would change
EVENTS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "editing": [("edit", EDIT)],
    "controls": [
        ("edit", {**EDIT, "control": True}), ("cover", {"places": [[WQ, [0, None]]], "value": 0.5}),
    ],
    "sentence": [("text", {"value": "sit on"})],
    "view": [("mode", {"value": "delta"})],
    "layer": [("layer", {"value": 1}), ("head", {"value": 1})],
    "snapshots": [("snapshot", {"name": "mine"})],
    "language": [("language", {})],
    "lessons": [("go", {"lesson": "values"})],
    "class": [("hand_out", {"page": "http://host/scores"})],
}


def watched(state: State) -> tuple[object, ...]:
    """Everything that these events could change."""
    return (state.choices, state.edits, state.snapshots, state.destination, state.handing, state.cursor)


@pytest.mark.parametrize(("name", "kind", "event"), [
    (name, kind, event) for name, events in EVENTS.items() for kind, event in events
])
def test_what_is_hidden_does_nothing(name: str, kind: str, event: dict[str, Any]) -> None:
    free, bound = reader("scores"), reader("scores", hidden=(name,))
    before = watched(bound)
    send(free, kind, **event)
    send(bound, kind, **event)
    assert watched(free) != watched(reader("scores"))
    assert watched(bound) == before
    assert (bound.seq, bound.message) == (1, None), "answered, so that the board does not send it again"


@pytest.mark.parametrize(("kind", "event"), [("undo", {}), ("redo", {}), ("reset", {})])
def test_hidden_undo(kind: str, event: dict[str, Any]) -> None:
    state = reader("scores", hidden=("undo",))
    state.commit((Edit(WQ, (0, 1), 0.5),))
    state.commit((Edit(WQ, (0, 1), 0.7),))
    state.move(-1)
    send(state, kind, **event)
    assert (state.edits, state.cursor) == ((Edit(WQ, (0, 1), 0.5),), 1)


def test_a_reset_belongs_to_the_cells_or_to_the_strip() -> None:
    assert hiding.owner({"type": "reset", "tensor": WQ}) == "editing"
    assert hiding.owner({"type": "reset", "tensor": WQ, "index": [0, 1]}) == "editing"
    assert hiding.owner({"type": "reset"}) == "undo"


def test_every_event_of_the_board_can_be_hidden_or_is_always_there() -> None:
    always = {kind for kind in HANDLERS if kind != "reset" and not hiding.owner({"type": kind})}
    assert always == {"select", "unselect", "text_cancel", "rows", "dismiss", "present", "open", "go_on"}


def test_sliders_work_where_cells_do_not() -> None:
    """One experiment: the slider alone."""
    state = reader("rope", hidden=("editing",))
    send(state, "edit", tensor="rope.offset", index=[], value=3, control=True)
    send(state, "edit", tensor="rope.offset", index=[], value=5)
    assert state.edits == (Edit("rope.offset", (), 3),)


def test_a_hidden_strip_takes_its_parts_along() -> None:
    state = reader(hidden=("strip",))
    assert all(state.hides(name) for name in hiding.PLACES["strip"])
    assert not any(state.hides(name) for place in ("page", "board") for name in hiding.PLACES[place])
    send(state, "text", value="on")
    assert state.choices.text == "Cats sit on"


def test_leaving_a_presentation_is_never_hidden() -> None:
    state = reader(presenting=True, hidden=hiding.NAMES)
    send(state, "present", value=False)
    assert not state.choices.presenting
    assert state.needs_page


def test_hidden_editing_and_arithmetic_leave_the_panel_empty() -> None:
    selected = (WQ, (0, 1))
    shown = alive("qkv", reader("qkv", selected=selected))
    assert shown["editor"] is not None
    assert shown["explanation"] is not None
    bare = alive("qkv", reader("qkv", selected=selected, hidden=("editing", "explanation")))
    assert (bare["editor"], bare["explanation"]) == (None, None)
    assert bare["hidden"] == ["editing", "explanation"]


def test_no_ways_to_other_lessons() -> None:
    for lesson in ("overview", "scores", "lm_head"):
        assert navigation.neighbours(lesson, reader(lesson, hidden=("lessons",))) == {"previous": None, "next": None}
    assert navigation.position(reader(hidden=("lessons",))) == "hidden"
    assert navigation.position(reader(presenting=True)) == "hidden"
    assert navigation.position(reader()) == "sidebar"


def test_a_board_without_its_controls() -> None:
    slider, switch = Slider(grid("a"), "label", 0, 1, 1), Switch(grid("b"), "label", 1.0)
    sections = (section("t", slider, op("+"), optional(switch, grid("c")), grid("a")),)
    (bare,) = hiding.without_controls(sections)
    assert bare == section("t", op("+"), optional(grid("c")), grid("a"))
    kept = {item["type"] for part in framed("rope", reader("rope")).data["layout"] for item in part["items"]}
    assert "slider" in kept
    assert not any(
        isinstance(item, Slider | Switch)
        for lesson in lessons().values() for part in hiding.without_controls(lesson.sections) for item in part.items
    )


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_note_invites_to_what_is_hidden(language: str) -> None:
    for lesson, key, name in (
        ("overview", "note_flow", "lessons"), ("why_residuals", "note_residuals_forward", "explanation"),
        ("why_residuals", "note_residuals_forward", "editing"), ("why_layers", "note_layers_parts", "controls"),
    ):
        invitation = say(language, f"{key}_{name}")
        readers = (reader(lesson, language=language, hidden=hidden) for hidden in ((), (name,)))
        free, bound = ([part["note"] or "" for part in framed(lesson, each).data["layout"]] for each in readers)
        assert any(invitation in note for note in free)
        assert not any(invitation in note for note in bound)
        assert any(say(language, key) in note for note in bound)


def test_an_address_says_what_is_hidden() -> None:
    state = reader(hidden=("lessons", "editing"), presenting=True)
    assert address(state) == "?lang=en&present=1&hide=lessons.editing"
    back = open_address({"lang": "en", "present": "1", "hide": "editing.lessons.lessons"}, None)
    assert back.message is None
    assert back.choices == state.choices


def test_another_preset_keeps_what_the_link_left_out() -> None:
    state = reader(hidden=("downloads",), presenting=True)
    state.switch_preset("scratch")
    assert (state.choices.hidden, state.choices.presenting) == (("downloads",), True)
    state.switch_preset("cats")
    assert (state.choices.hidden, state.choices.presenting) == (("downloads",), True)


@pytest.mark.parametrize("query", [
    {"hide": "everything"}, {"hide": "lessons.nothing"}, {"hide": "Lessons"}, {"hide": "lessons,prose"},
    {"present": "yes"}, {"present": "-1"}, {"present": ""},
])
def test_a_broken_link_hides_nothing(query: dict[str, str]) -> None:
    state = open_address({"lang": "en", **query}, None)
    assert state.message is not None
    assert state.message[0] == "error"
    assert state.message[1].startswith(say("en", "broken_link", reason="").strip()[:20])
    assert (state.choices.hidden, state.choices.presenting) == ((), False)


@pytest.mark.parametrize(("steps", "presenting"), [("0", False), ("1", True), ("7", True)])
def test_the_steps_of_a_presentation_are_the_browser_s(steps: str, presenting: bool) -> None:
    state = open_address({"lang": "en", "present": steps}, None)
    assert state.message is None
    assert state.choices.presenting is presenting


@pytest.mark.parametrize("language", LANGUAGES)
def test_everything_that_can_be_hidden_has_words(language: str) -> None:
    words = [say(language, f"hide_{name}") for name in hiding.NAMES]
    assert len(set(words)) == len(words) == len(set(hiding.NAMES))
    assert {name for name in hiding.NAMES if name in EVENTS} <= set(hiding.NAMES)
