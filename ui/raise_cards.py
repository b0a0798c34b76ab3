"""Lesson 39's cards: the steepest cell of each parameter, and the smallest single edit that makes a token win."""

from __future__ import annotations

import streamlit as st

from engine import Edit, GlassboxError
from engine.search import CELLS, CELLS_LARGE, LARGEST, MARGIN, Outcome, standing, steepest
from engine.types import Index
from ui import naming, token_choice
from ui.markup import Markup, card_head, fill, join, scrolling, tag
from ui.quests import Quest
from ui.state import State, current
from ui.staves import token_chip
from ui.text import explain_error, listed, number, short

# parameters that the table of slopes lists, and edits that have a button
MOST_STEEP = 8
MOST_BUTTONS = 5


def quest(state: State, token: int) -> Quest:
    """The search for this reader's model as it now stands."""
    choices = state.choices
    return Quest(choices.preset, choices.seed, choices.switches, state.ids, state.edits, token)


def report(state: State) -> None:
    """Draw both cards."""
    with st.container(key="card_raise_slopes"):
        head = _head(state, "raise_slopes", count=MOST_STEEP)
        st.html(join(head, tag("div", _slopes(state), css="card-content")))
    with st.container(key="card_raise_search"):
        standings = tag("div", *_standings(state), css="card-content")
        st.html(join(_head(state, "raise_search", margin=short(MARGIN)), standings))
        if not state.hides("controls"):
            _search(state)


def _head(state: State, name: str, **values: object) -> Markup:
    return card_head(state.say(name), state.say(f"{name}_note", **values))


def _cell(state: State, name: str, index: Index) -> str:
    return naming.cell_title(state.model, state.ids, state.trace[name], name, index)


# ---- slopes

def _slopes(state: State) -> Markup:
    """The parameters with the steepest cells, one line each."""
    heads = ("cell", "slope", "sloped")
    table = steepest(state.trace)
    lines = [
        tag("tr", tag("th", _cell(state, one.name, one.index), scope="row"),
            tag("td", number(one.slope), css="pairs-ids"),
            tag("td", state.say("raise_of", part=one.sloped, whole=one.cells), css="pairs-ids"))
        for one in table[:MOST_STEEP] if one.sloped
    ]
    if not lines:
        return tag("p", state.say("raise_no_slopes"), css="card-status", role="status")
    names = tag("tr", *(tag("th", state.say(f"raise_{name}"), scope="col") for name in heads))
    title = state.say("raise_slopes")
    return scrolling(title, tag("table", names, *lines, css="pairs raise-cells", aria_label=title))


# ---- the search

def _standings(state: State) -> list[Markup]:
    """Whether the token and its rival lead, and by how much."""
    return [
        tag("p", fill(
            state.say("raise_leads" if now.leads else "raise_behind"), token=token_chip(state.model, now.token),
            other=token_chip(state.model, now.leader), gap=number(abs(now.lead)),
        ), css="card-status")
        for now in _outcomes(state)
    ]


def _outcomes(state: State) -> list[Outcome]:
    """How the token and its rival stand."""
    logits = state.trace["logits"].row(0, len(state.ids) - 1)
    tokens = dict.fromkeys((token_choice.chosen(state), token_choice.rival(state)))
    return [standing(logits, token) for token in tokens]


def _search(state: State) -> None:
    """A button for each token that does not lead, and what was found for the one that was asked for."""
    with st.container(horizontal=True, key="raise_find"):
        for place, now in enumerate(_outcomes(state)):
            st.button(
                state.say("raise_find", token=token_choice.label(state, now.token)), disabled=now.leads,
                type="secondary" if now.leads else "primary",
                key=f"raise_find_{place}_{state.choices.language}", on_click=_find, args=(now.token,),
            )
    asked = state.sought
    # what was found is of use before any of the edits, and with one of them
    if asked is not None and quest(state, asked.token).under(asked.edits) == asked and asked.covers(state.edits):
        _found(state, asked)


def _find(token: int) -> None:
    state = current()
    state.sought = quest(state, token)


def _found(state: State, asked: Quest) -> None:
    """The edits, the first few with a button each; or what was tried in vain."""
    outcome = asked.outcome
    token = token_chip(state.model, asked.token)
    said = fill(state.say("raise_found" if outcome.found else "raise_none"), token=token)
    table = _table(state, asked) if outcome.found else ""
    more = state.say("raise_buttons", count=MOST_BUTTONS) if len(outcome.found) > MOST_BUTTONS else ""
    st.html(tag("div", tag("p", said, css="card-status", role="status"), table, *([tag("p", more)] if more else []),
                css="card-content"))
    with st.container(horizontal=True, key="raise_apply"):
        for place, one in enumerate(outcome.found[:MOST_BUTTONS]):
            is_applied = state.edits == asked.with_found(one)
            st.button(
                state.say("raise_take_back" if is_applied else "raise_apply", cell=_cell(state, one.name, one.index)),
                key=f"raise_apply_{place}_{state.choices.language}", on_click=_apply,
                args=(asked.edits if is_applied else asked.with_found(one),),
            )
    st.html(tag("div", *_work(state, outcome), css="card-content"))


def _apply(edits: tuple[Edit, ...]) -> None:
    """Put an edit that was found in force, or take it back: one step of undo."""
    state = current()
    state.message = None
    try:
        state.commit(edits)
    except GlassboxError as error:
        state.message = ("error", explain_error(state.choices.language, error))


def _table(state: State, asked: Quest) -> Markup:
    """A line for each edit: the cell, its value before and after, the change beside the estimate, the lead."""
    names = ("cell", "before", "after", "change", "estimate", "lead")
    heads = tag("tr", *(tag("th", state.say(f"raise_{name}", margin=short(MARGIN)), scope="col") for name in names))
    lines = [
        tag("tr", tag("th", _cell(state, one.name, one.index), scope="row"), *(
            tag("td", number(each), css="pairs-ids") for each in (one.before, one.after, one.change, one.estimate)
        ), tag("td", fill(
            state.say("raise_over"), lead=number(one.lead), other=token_chip(state.model, one.runner_up),
        )), css="pairs-next" if state.edits == asked.with_found(one) else "")
        for one in asked.outcome.found
    ]
    title = state.say("raise_search")
    return scrolling(title, tag("table", heads, *lines, css="pairs raise-cells", aria_label=title))


def _work(state: State, outcome: Outcome) -> list[Markup]:
    """How much was tried, and where nothing was found."""
    is_large = state.trace["logits"].is_deferred
    said = [state.say(
        "raise_work", sloped=outcome.sloped, cells=outcome.cells, most=CELLS_LARGE if is_large else CELLS,
        verified=outcome.verified, runs=outcome.runs, largest=f"{LARGEST:g}",
    )]
    for key, names in (("raise_failed", outcome.failed), ("raise_flat", outcome.flat)):
        if names:
            said.append(state.say(key, names=listed(state.choices.language, list(map(naming.long_name, names)))))
    return [tag("p", each) for each in said]
