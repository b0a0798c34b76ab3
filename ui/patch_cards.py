"""Lesson 36's cards: the other sentence, both runs side by side, the grid of effects, and one place of it."""

from __future__ import annotations

from collections.abc import Iterable
from time import monotonic, sleep
from typing import Any

import streamlit as st

from engine import Carried, GlassboxError, Trace
from engine.patching import KINDS
from engine.sampling import leading
from ui import naming, pairs, patch_charts, patching, token_choice, word_choice
from ui.controls import CONTROLS
from ui.markup import Markup, card_head, fill, join, scrolling, tag
from ui.patching import Place, Setting
from ui.state import State, current
from ui.staves import token_chip
from ui.text import explain_error, number, parted, percent

RUNS = ("here", "there", "now")
# what takes no longer needs no bar, which would flash up and be gone
UNNOTICED_SECONDS = 0.05


# ---- what is set with the page

def panel(state: State) -> None:
    """The question, the other sentence, and what is carried."""
    token_choice.panel(state)
    language = state.choices.language
    with st.container(key="card_patch_setup"):
        st.html(_head(state, "setup"))
        with st.container(horizontal=True, vertical_alignment="bottom"):
            _other(state)
            st.button(state.say("patch_swap"), key=f"patch_swap_{language}", on_click=_swap,
                      help=state.say("patch_swap_help"))
        word_choice.buttons(state, "carried", "patch_what", KINDS,
                            lambda kind: state.say(f"carried_{kind}", head=state.choices.head))


def _other(state: State) -> None:
    """The field of the other sentence; emptied, it has the lesson's own again."""
    key, most = f"other_{state.choices.language}_{state.choices.preset}", int(CONTROLS["other"].high)
    st.session_state[key] = pairs.text(state)
    st.text_input(
        state.say("patch_other"), key=key, max_chars=most, help=state.say("patch_other_help"),
        on_change=lambda: current().set_control("other", st.session_state[key][:most]),
    )


def _swap() -> None:
    """The other sentence becomes this one, if the model can read it."""
    state = current()
    tokenizer = state.model.tokenizer
    assert tokenizer is not None
    try:
        ids = pairs.other(state)
    except GlassboxError:
        return  # the page says already what is wrong with it
    # what was carried over from it would now be this sentence's own
    state.commit(tuple(edit for edit in state.edits if edit.value != Carried(ids)))
    state.set_control("other", tokenizer.decode(list(state.ids)))
    state.choose(text=tokenizer.decode(list(ids)))


# ---- what follows each edit

def report(state: State) -> None:
    """Both runs, the grid and the place that is looked at; or what is wrong with the other sentence."""
    try:
        now = patching.setting(state)
    except GlassboxError as error:
        with st.container(key="card_patch_refused"):
            st.html(tag("p", explain_error(state.choices.language, error), css="card-refusal", role="alert"))
        return
    place = patching.chosen(state, now)
    with st.container(key="card_patch_runs"):
        tables = tag("div", _sentences(state, now), _numbers(state, now), css="card-content")
        st.html(join(_head(state, "runs"), tables))
        _elsewhere(state, now)
    if not state.hides("chart"):
        with st.container(key="card_patch_grid"):
            st.html(_head(state, "grid"))
            _grid(state, now, place)
    with st.container(key="card_patch_place"):
        st.html(_head(state, "place"))
        _place(state, now, place)


def _head(state: State, name: str) -> Markup:
    return card_head(state.say(f"patch_{name}"), state.say(f"patch_{name}_note"))


def _sentences(state: State, now: Setting) -> Markup:
    """Both sentences, a token below the other; those that differ are marked."""
    heads = tag("tr", tag("td"), *(tag("th", str(position), scope="col") for position in range(len(now.ids))))
    lines = [
        tag("tr", tag("th", state.say(f"patch_{name}"), scope="row"), *(
            tag("td", token_chip(state.model, token, "new" if position in now.differing else ""))
            for position, token in enumerate(ids)
        ))
        for name, ids in zip(RUNS, (now.ids, now.other), strict=False)
    ]
    table = tag("table", heads, *lines, css="pairs patch-sentences", aria_label=state.say("patch_setup"))
    return scrolling(state.say("patch_setup"), table)


def _numbers(state: State, now: Setting) -> Markup:
    """What the runs say of the two tokens, and which token leads in each; the last column is the board's run."""
    traces = (now.here, now.there, state.trace)
    token, rival = (token_chip(state.model, each) for each in (now.question.token, now.question.rival))
    heads = tag("tr", tag("td"), *(tag("th", state.say(f"patch_{name}"), scope="col") for name in RUNS))
    lines = [
        _line(fill(state.say("patch_logit"), token=token), (_logit(trace, "token_logit") for trace in traces)),
        _line(fill(state.say("patch_logit"), token=rival), (_logit(trace, "rival_logit") for trace in traces)),
        _line(fill(state.say("patch_difference"), token=token, rival=rival),
              (_logit(trace, "difference") for trace in traces), "patch-sum"),
        _line(state.say("patch_leader"), (_leader(state, trace) for trace in traces)),
    ]
    table = tag("table", heads, *lines, css="pairs patch-numbers", aria_label=state.say("patch_runs"))
    return scrolling(state.say("patch_runs"), table)


def _elsewhere(state: State, now: Setting) -> None:
    """What is still carried over from sentences that are not the other one, and the way to take it back."""
    tokenizer = state.model.tokenizer
    assert tokenizer is not None
    sources = [edit.value.ids for edit in state.active(state.edits)
               if isinstance(edit.value, Carried) and edit.value.ids != now.other]
    if not sources:
        return
    sentences = Markup(parted(state.choices.language, (
        tag("em", tokenizer.decode(list(ids))) for ids in dict.fromkeys(sources)
    )))
    said = fill(state.say("patch_elsewhere"), sentences=sentences, count=str(len(sources)))
    st.html(tag("div", tag("p", said, role="status"), css="card-content card-status"))
    if not state.hides("controls"):
        st.button(state.say("patch_elsewhere_back"), key=f"patch_elsewhere_{state.choices.language}",
                  on_click=_take_back_all_but, args=(now.other,))


def _take_back_all_but(other: tuple[int, ...]) -> None:
    """Leave what is carried over from the other sentence, and numbers; one step of undo."""
    state = current()
    state.commit(tuple(
        edit for edit in state.edits if not isinstance(edit.value, Carried) or edit.value.ids == other
    ))


def _line(name: str, cells: Iterable[str], css: str = "") -> Markup:
    return tag("tr", tag("th", name, scope="row"), *(tag("td", cell) for cell in cells), css=css)


def _logit(trace: Trace, name: str) -> str:
    return number(trace[f"patch.{name}"].number((0,)))


def _leader(state: State, trace: Trace) -> Markup:
    """The likeliest next token and its probability."""
    last = trace.ids.shape[1] - 1
    leader = leading(trace["logits"].row(0, last), 1)[0]
    likely = percent(state.choices.language, float(trace["probabilities"].row(0, last)[leader]))
    return join(token_chip(state.model, leader), " ", tag("span", likely, css="patch-likely"))


# ---- the grid

def _grid(state: State, now: Setting, chosen: Place) -> None:
    """The picture, once every effect is there; until then how many are.

    Where the reader leaves the page or changes what it shows, Streamlit ends the run at the next element
    that is sent, here the bar. What has been computed is kept.
    """
    with st.container(key=f"patch_spot_{'few' if len(now.ids) <= patch_charts.FEW else 'many'}"):
        spot = st.empty()
    found: dict[Place, float] = {}
    count, begun = len(now.places), monotonic()
    for place, effect in patching.effects(now):
        found[place] = effect
        if monotonic() - begun > UNNOTICED_SECONDS:
            spot.progress(len(found) / count, state.say("patch_progress", done=len(found), count=count))
            sleep(0)  # other readers' turn
    is_used = not state.hides("controls")
    key = f"patch_grid_{state.choices.language}"
    spot.plotly_chart(
        patch_charts.grid(state, now, found, chosen), key=key, width="stretch", config={"displayModeBar": False},
        alt=state.say("patch_grid"), on_select=(lambda: _click(st.session_state[key])) if is_used else "ignore",
        selection_mode="points",
    )
    st.html(tag("div", tag("p", _legend(state, now)), css="card-content card-status"))


def _click(event: Any) -> None:
    for point in event["selection"]["points"][:1]:
        _look_at(current(), (round(point["y"]), round(point["x"])))


def _look_at(state: State, place: Place) -> None:
    """Look at a place; the board's layer goes along."""
    layer, position = place
    state.set_control("carried_layer", layer)
    state.set_control("carried_position", position)
    below = max(layer - 1, 0)
    state.needs_page |= below != state.choices.layer
    state.choose(layer=below)


def _legend(state: State, now: Setting) -> str:
    """What the two ends of the scale are; or why there is no scale."""
    here, there = now.ends
    if now.ids == now.other:
        return state.say("patch_same")
    key = "patch_legend" if now.share(here) is not None else "patch_no_share"
    return state.say(key, here=number(here), there=number(there))


# ---- one place

def _place(state: State, now: Setting, place: Place) -> None:
    """Which place, what carrying it does, its vector in both runs, and the button that makes it an edit."""
    if not state.hides("controls"):
        _choice(state, now, place)
    st.html(tag("div", tag("p", _said(state, now, place), role="status"), css="card-content card-status"))
    _vectors(state, now, place)


def _choice(state: State, now: Setting, place: Place) -> None:
    """The place as two lists, and the edit."""
    layer, position = place
    suffix, edit = state.choices.language, now.edit(place)
    names = {each: f"{each}: {naming.token_label(state.model, token)}" for each, token in enumerate(now.ids)}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        for name, value, entries in (
            ("layer", layer, {each: patch_charts.layer_label(state, now.kind, each) for each in now.layers}),
            ("position", position, names),
        ):
            key = f"carried_{name}_{suffix}"
            st.session_state[key] = value
            st.selectbox(
                state.say(f"patch_at_{name}"), list(entries), format_func=entries.__getitem__, key=key, width=200,
                on_change=lambda: _look_at(current(), (
                    st.session_state[f"carried_layer_{suffix}"], st.session_state[f"carried_position_{suffix}"],
                )),
            )
        is_carried = edit in state.edits
        st.button(
            state.say("patch_take_back" if is_carried else "patch_carry"), key=f"patch_carry_{suffix}",
            type="secondary" if is_carried else "primary", on_click=_carry, args=(now, place, not is_carried),
        )


def _carry(now: Setting, place: Place, wanted: bool) -> None:
    """Make the place an edit like any other, or take that edit back; one step of undo."""
    state, edit = current(), now.edit(place)
    others = tuple(each for each in state.edits if each.key != edit.key)
    state.message = None
    try:
        state.commit((*others, edit) if wanted else others)
    except GlassboxError as error:
        state.message = ("error", explain_error(state.choices.language, error))


def _said(state: State, now: Setting, place: Place) -> Markup:
    """The effect of the place in words."""
    difference = patching.effect(now, place)
    share = now.share(difference)
    here, there = now.ends
    return fill(
        state.say("patch_said" if share is not None else "patch_said_no_share"),
        difference=number(difference), here=number(here), there=number(there),
        share="" if share is None else number(share),
    )


def _vectors(state: State, now: Setting, place: Place) -> None:
    """The numbers that stand at the place in both runs, and in the board's."""
    edit = now.edit(place)
    prefix = "d" if "head" in now.here[edit.name].axes else "c"
    rows = [trace[edit.name].data[edit.index] for trace in (now.here, now.there, state.trace)]
    columns = [f"{prefix}{feature}" for feature in range(len(rows[0]))]
    st.caption(state.say("patch_vectors", name=edit.name))
    st.dataframe(
        {
            "run": [state.say(f"patch_{name}") for name in RUNS],
            **{name: [number(float(row[feature])) for row in rows] for feature, name in enumerate(columns)},
        },
        column_config={
            "run": st.column_config.TextColumn(""),
            **{name: st.column_config.TextColumn(alignment="right") for name in columns},
        },
        key="patch_vectors", alt=state.say("patch_vectors", name=edit.name), hide_index=True,
    )
