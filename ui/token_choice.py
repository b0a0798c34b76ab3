"""Which token a lesson asks about, which one it is held against, and where: controls for pages that look inside."""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache

import streamlit as st

from engine import presets
from engine.sampling import leading
from ui import naming, pairs, runs
from ui.controls import PLACED
from ui.state import State, current
from ui.switches import Switches

# a longer vocabulary offers the tokens that lead, and a field for an id
MOST_OFFERED = 300
LEADING = 10
MODEL_S_OWN = -1


def chosen(state: State) -> int:
    """The token that the lesson asks about: the reader's, or the one that the unedited model puts first."""
    return state.question.token


def rival(state: State) -> int:
    """The token that it is held against: the reader's, or the best of the others."""
    return state.question.rival


def label(state: State, token: int) -> str:
    """The token with its id, which some have for a name."""
    return naming.with_id(naming.token_label(state.model, token), token)


def panel(state: State) -> None:
    """The choice of the token, of its rival and, where the lesson looks at one position, of that."""
    names = ("position", "token", "rival") if state.lesson in PLACED else ("token", "rival")
    with st.container(key="token_choice", border=True), st.container(horizontal=True, vertical_alignment="bottom"):
        for name in names:
            _choice(state, name)
        if state.model.config.vocab_size > MOST_OFFERED:
            for name in ("token", "rival"):
                _by_id(state, name)


def _choice(state: State, name: str) -> None:
    """One control as a list; the first entry leaves the choice to the model."""
    key = f"{name}_{state.choices.language}_{state.choices.preset}"
    entries = _positions(state) if name == "position" else _tokens(state, name)
    now = int(state.control(name))
    # the sentence may be shorter than it was
    st.session_state[key] = now if now in entries else MODEL_S_OWN
    st.selectbox(
        state.say(f"choose_{name}"), list(entries), format_func=entries.__getitem__, key=key, width=260,
        on_change=lambda: _set(name, st.session_state[key]),
    )


def _positions(state: State) -> dict[int, str]:
    ids = state.ids
    return {
        MODEL_S_OWN: state.say("choose_position_last", token=naming.token_label(state.model, ids[-1])),
        **{place: f"{place}: {naming.token_label(state.model, token)}" for place, token in enumerate(ids[:-1])},
    }


def _tokens(state: State, name: str) -> dict[int, str]:
    """The tokens that are offered: those that lead, the sentence's, the preset's, the chosen one, or all there are.

    A token is not held against itself.
    """
    choices = state.choices
    asked = state.control("token") if name == "rival" else -1
    place = (choices.preset, choices.seed, choices.switches)
    usual = runs.asked(*place, state.ids, int(asked), position=state.position, beside=pairs.beside(state))
    own = usual.rival if name == "rival" else usual.token
    size, now = state.model.config.vocab_size, int(state.control(name))
    near = [
        *leaders(*place, state.ids, state.position), *presets.CANDIDATES[choices.preset], *state.ids,
        *([now] if 0 <= now < size else []),
    ]
    offered = dict.fromkeys([*near, *(range(size) if size <= MOST_OFFERED else ())])
    is_asked = {chosen(state)} if name == "rival" else set()
    labels = {token: label(state, token) for token in offered if token not in is_asked}
    # an id without a word says little, even where it leads
    ordered = sorted(labels, key=lambda token: labels[token].startswith("#"))
    return {
        MODEL_S_OWN: state.say(f"choose_{name}_own", token=naming.token_label(state.model, own)),
        **{token: labels[token] for token in ordered},
    }


@lru_cache(maxsize=256)
def leaders(preset: str, seed: int, switches: Switches, ids: tuple[int, ...], position: int) -> tuple[int, ...]:
    """The tokens that the unedited model puts first at a position."""
    logits = runs.baseline(preset, seed, switches, ids, "overview")["logits"]
    return tuple(leading(logits.row(0, position), LEADING))


def _by_id(state: State, name: str) -> None:
    """A field for the id of a token that the list does not offer."""
    key = f"{name}_id_{state.choices.language}_{state.choices.preset}"
    st.session_state[key] = getattr(state.question, name)
    st.number_input(
        state.say(f"choose_{name}_id"), 0, state.model.config.vocab_size - 1, key=key, width=160,
        on_change=lambda: _set(name, st.session_state[key]),
    )


def _set(name: str, number: int) -> None:
    with suppress(ValueError):  # beyond any vocabulary
        current().set_control(name, number)
