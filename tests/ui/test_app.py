"""The app's own script, run without a browser: every page in both languages, links, and two sessions."""

from __future__ import annotations

import pytest

from engine import Edit
from formats import edits as edit_links
from tests.ui.support import edit, on_page, opened, reader, state_of, taking_turns
from ui.lesson import unless_left
from ui.navigation import LESSONS
from ui.prose import read
from ui.text import LANGUAGES, say

WQ = "layers.0.attention.Wq"


@pytest.mark.parametrize(("language", "preset"), [
    (language, preset) for number, language in enumerate(LANGUAGES) for preset in taking_turns(number)
])
def test_every_page_runs(language: str, preset: str) -> None:
    app = opened(lang=language, preset=preset)
    for lesson in LESSONS:
        on_page(app, lesson)
        assert [title.value for title in app.title] == [read(lesson, language).title]
        assert app.sidebar.selectbox[0].label == say(language, "preset")
    assert state_of(app).choices.preset == preset
    assert state_of(app).choices.language == language


def test_a_link_opens_with_its_edits() -> None:
    link = edit_links.encode([Edit(WQ, (0, 1), 0.25)])
    app = opened(lang="zh", text="sit on", edits=link, cell=f"{WQ}~0.1", layer="2")
    assert not app.exception
    state = state_of(app)
    assert state.message is None
    assert state.edits == (Edit(WQ, (0, 1), 0.25),)
    assert (state.ids, state.choices.layer, state.choices.selected) == ((45, 78), 1, (WQ, (0, 1)))


@pytest.mark.parametrize("query", [
    {"lang": "xx"}, {"preset": "foo"}, {"text": "zebra"}, {"seed": "1e999"}, {"edits": "garbage"},
    {"rows": "x" * 10_000}, {"cell": "NaN"},
])
def test_a_broken_link_runs_the_default(query: dict[str, str]) -> None:
    app = opened(**query)
    assert not app.exception
    assert state_of(app).message is not None
    assert [title.value for title in app.title] == [read("overview", "en").title]


def test_an_edit_survives_every_page() -> None:
    """C04: set a weight, visit all pages, return: it is still set."""
    app = opened(lang="en")
    edit(state_of(app), WQ, (0, 1), 3.5)
    for lesson in (*LESSONS, "overview"):
        on_page(app, lesson)
    assert state_of(app).trace[WQ].data[0, 1] == 3.5


def test_a_preset_chosen_in_the_sidebar() -> None:
    app = opened(lang="en")
    edit(state_of(app), WQ, (0, 1), 3.5)
    labels = [box.label for box in app.sidebar.selectbox]
    assert labels == [say("en", "preset")]
    app.sidebar.selectbox[0].select("scratch").run()
    assert not app.exception
    assert state_of(app).choices.preset == "scratch"
    app.sidebar.number_input[0].set_value(7).run()
    app.sidebar.selectbox[1].select("half").run()
    assert not app.exception
    assert (state_of(app).choices.seed, state_of(app).choices.switches) == (7, (("rope_pairing", "half"),))
    app.sidebar.selectbox[0].select("cats").run()
    assert not app.exception
    assert state_of(app).trace[WQ].data[0, 1] == 3.5


def test_two_sessions_are_apart() -> None:
    first, second = opened(lang="en"), opened(lang="en")
    edit(state_of(first), WQ, (0, 1), 3.5)
    first.run()
    second.run()
    assert state_of(first).edits
    assert state_of(second).edits == ()
    assert state_of(second).trace[WQ].data[0, 1] == 0


def test_the_switchboard_and_its_notice_on_every_page() -> None:
    app = opened(lang="en")
    on_page(app, "switchboard")
    assert not app.dataframe
    app.segmented_control(key="arch_norm_en").set_value("layernorm").run()
    assert not app.exception
    assert state_of(app).choices.switches == (("norm", "layernorm"),)
    prediction, tensors = app.dataframe
    assert {"layers.0.norm1.bias", "layers.0.norm1.mean_square"} <= set(tensors.value["name"])
    assert prediction.value["token"].iloc[0] == "mats · 90"
    app.button(key="combination_nanochat").click().run()
    assert dict(state_of(app).choices.switches)["qk_norm"] is True
    assert app.segmented_control(key="arch_norm_en").value == "rmsnorm"
    on_page(app, "scores")
    assert "half" in state_of(app).model.config.rope_pairing
    (notice,) = app.sidebar.info
    assert say("en", "arch_qk_norm") in notice.value
    app.sidebar.button(key="sidebar_own_architecture").click().run()
    assert state_of(app).choices.switches == ()
    assert not app.sidebar.info
    on_page(app, "switchboard")
    assert app.segmented_control(key="arch_qk_norm_en").value == "off"
    assert app.segmented_control(key="arch_norm_placement_en").disabled is False
    app.segmented_control(key="arch_norm_en").set_value("none").run()
    assert app.segmented_control(key="arch_norm_placement_en").disabled is True


def test_a_link_to_a_switched_model_shows_its_switches() -> None:
    app = opened(lang="zh", preset="today", arch="positions-rope.bias-off")
    on_page(app, "switchboard")
    assert app.segmented_control(key="arch_positions_zh").value == "rope"
    assert app.segmented_control(key="arch_bias_zh").value == "off"
    assert say("zh", "arch_positions") in app.sidebar.info[0].value


def test_an_answer_whose_page_was_left_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of its numbers may be of two pages; an error on the page that is still there is an error."""
    stopped: list[str] = []
    monkeypatch.setattr("streamlit.stop", lambda: stopped.append("stopped"))
    with unless_left(reader("scores"), "training"):
        raise ValueError("of two pages")
    assert stopped == ["stopped"]
    with pytest.raises(ValueError, match="of this page"), unless_left(reader("scores"), "scores"):
        raise ValueError("of this page")
    assert stopped == ["stopped"]
