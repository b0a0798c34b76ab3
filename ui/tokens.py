"""Lesson 14's cards on the page, with their controls: texts, the stepper of the merges, and files."""

from __future__ import annotations

from contextlib import suppress

import streamlit as st

from ui import token_cards, tokenizer_desk
from ui.controls import CONTROLS
from ui.state import State, current

AREA_HEIGHTS = {"corpus": 116, "sample": 68}


def show(state: State) -> None:
    """Draw the four cards; the controls among them only where the reader's link has them."""
    language, desk = state.choices.language, state.desk
    corpus, sample = str(state.control("corpus")), str(state.control("sample"))
    merges = min(int(state.control("merges")), len(token_cards.learning(corpus)) - 1)
    has_controls = not state.hides("controls")
    with st.container(key="card_tokens_sentence"):
        st.html(token_cards.head(language, "sentence"))
        st.html(token_cards.sentence(language, state.choices.preset, state.ids))
    with st.container(key="card_tokens_learn"):
        st.html(token_cards.head(language, "learn"))
        if has_controls:
            _text(state, "corpus")
            _stepper(state, merges, len(token_cards.learning(corpus)) - 1)
        st.html(token_cards.learn(language, corpus, merges))
    with st.container(key="card_tokens_apply"):
        st.html(token_cards.head(language, "apply"))
        if has_controls:
            _text(state, "sample")
        st.html(token_cards.applied(language, corpus, merges, sample))
    with st.container(key="card_tokens_own"):
        st.html(token_cards.head(language, "own"))
        if has_controls:
            tokenizer_desk.ask(language, desk.deliveries, lambda files: current().desk.receive(files, sample))
        if desk.tokenizer is not None or desk.refusal is not None:
            st.html(token_cards.own(language, desk.tokenizer, desk.refusal, sample))
        if desk.tokenizer is not None and has_controls:
            st.button(state.say("own_remove"), key=f"own_remove_{language}", on_click=lambda: current().desk.clear())


def _stepper(state: State, here: int, last: int) -> None:
    """Buttons to the first, the previous, the next and the last merge."""
    ways = (("merge_first", 0), ("merge_back", here - 1), ("merge_next", here + 1), ("merge_last", last))
    with st.container(horizontal=True, key="merge_steps"):
        for name, goal in ways:
            st.button(
                state.say(name), key=f"{name}_{state.choices.language}", on_click=_go_to, args=(goal,),
                disabled=goal == here or not 0 <= goal <= last, type="primary" if name == "merge_next" else "secondary",
            )


def _go_to(merges: int) -> None:
    current().set_control("merges", merges)


def _text(state: State, name: str) -> None:
    """A field for one of the lesson's texts; what the state has is what it shows."""
    key, value = f"{name}_{state.choices.language}", state.control(name)
    if st.session_state.get(key) != value:
        st.session_state[key] = value
    st.text_area(
        state.say(f"text_{name}", most=int(CONTROLS[name].high)), key=key, height=AREA_HEIGHTS[name],
        max_chars=int(CONTROLS[name].high), on_change=lambda: _take(name, key),
    )


def _take(name: str, key: str) -> None:
    with suppress(ValueError):  # longer than the field lets anybody type
        current().set_control(name, st.session_state[key])
        if name == "corpus":
            # other merges are learned on another text
            _go_to(0)
