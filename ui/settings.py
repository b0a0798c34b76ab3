"""The sidebar's settings: which model, and the choices that belong to it."""

from __future__ import annotations

import streamlit as st

from engine import presets
from engine.bounds import LARGEST_SEED
from engine.config import PAIRINGS
from ui import events, runs, switchboard
from ui.state import State, current
from ui.text import parted, percent


def show(state: State) -> None:
    """Preset and where its weights come from, sentences to try, and for the scratch model seed and RoPE pairing."""
    if state.choices.presenting or state.hides("model"):
        return
    # Streamlit keeps a choice by its label, so each language has widgets of its own; the preset is
    # in the key as well, because another preset brings its own seed and pairing.
    suffix = f"{state.choices.language}_{state.choices.preset}"
    with st.sidebar:
        st.selectbox(
            state.say("preset"), presets.NAMES, index=presets.NAMES.index(state.choices.preset),
            format_func=lambda name: state.say(f"preset_{name}"), key=f"preset_{suffix}",
            on_change=lambda: current().switch_preset(st.session_state[f"preset_{suffix}"]),
        )
        st.caption(note(state))
        if not state.hides("sentence"):
            _examples(state)
        if state.choices.switches:
            st.info(switchboard.notice(state))
            st.button(state.say("own_architecture"), key="sidebar_own_architecture",
                      on_click=lambda: current().choose(switches=()))
        if state.choices.preset == "scratch":
            st.number_input(
                state.say("seed"), 0, LARGEST_SEED, value=state.choices.seed, key=f"seed_{suffix}",
                on_change=lambda: current().choose(seed=int(st.session_state[f"seed_{suffix}"])),
            )
            # the switchboard may have changed it
            st.session_state[f"pairing_{suffix}"] = state.model.config.rope_pairing
            st.selectbox(
                state.say("pairing"), PAIRINGS,
                format_func=lambda name: state.say(f"pairing_{name}"), key=f"pairing_{suffix}",
                on_change=lambda: current().switch(rope_pairing=st.session_state[f"pairing_{suffix}"]),
            )


def note(state: State) -> str:
    """The sizes of the preset; of a trained one also what it learned from, and which head does what."""
    preset, card = state.choices.preset, presets.card(state.choices.preset)
    values: dict[str, object] = {**runs.sizes(state.baseline)}
    if card is not None:
        values |= {"steps": card.steps, "copying": percent(state.choices.language, card.figures["copying"])}
        values |= {
            work: parted(state.choices.language, (
                state.say("head_place", layer=layer + 1, head=head) for layer, head in places
            )) for work, places in card.heads.items()
        }
    return state.say(f"preset_{preset}_note", **values)


def _examples(state: State) -> None:
    """Sentences that show what a preset has learned, each a button."""
    sentences = presets.EXAMPLES.get(state.choices.preset, {})
    if sentences:
        st.caption(state.say("learned"))
    for what, sentence in sentences.items():
        st.button(
            state.say("learned_sentence", what=state.say(f"learned_{what}"), sentence=sentence),
            key=f"learned_{what}_{state.choices.language}_{state.choices.preset}", width="stretch",
            on_click=lambda sentence=sentence: events.take_text(current(), sentence),
        )
