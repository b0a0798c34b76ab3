"""The switchboard: every choice of architecture as a control, and what the switches changed."""

from __future__ import annotations

import streamlit as st

from engine import ConfigError
from ui import comparison, outcome_tables, runs
from ui.state import State, current
from ui.switches import COMBINATIONS, FIELDS, Value, combination, has_effect, matches, read_word, word
from ui.text import explain_error


def choice(state: State, field: str, value: Value) -> str:
    """A value of a field in the reader's language."""
    return state.say(f"arch_{word(value)}" if isinstance(value, bool) else f"arch_{field}_{word(value)}")


def notice(state: State) -> str:
    """What differs from the preset, in one sentence."""
    changed = (
        state.say("switched_pair", name=state.say(f"arch_{field}"), value=choice(state, field, value))
        for field, value in state.choices.switches
    )
    return state.say("switched_notice", switches=state.say("switched_separator").join(changed))


def panel(state: State) -> None:
    """Named combinations, then a control for every field."""
    own = runs.model(state.choices.preset, state.choices.seed, ()).config
    config = state.model.config
    named = [name for name in COMBINATIONS if matches(name, config)]
    with st.container(key="switchboard", border=True):
        with st.container(horizontal=True):
            for name in COMBINATIONS:
                st.button(state.say(f"combination_{name}"), key=f"combination_{name}",
                          type="primary" if name in named else "secondary",
                          on_click=lambda name=name: take(combination(name, own)))
            st.button(state.say("own_architecture"), key="combination_own", disabled=not state.choices.switches,
                      on_click=lambda: take({field: getattr(own, field) for field in FIELDS}))
        for name in named:
            st.caption(state.say(f"combination_{name}_missing"))
        with st.container(horizontal=True, gap="medium"):
            for field in FIELDS:
                _control(state, field)


def _control(state: State, field: str) -> None:
    """One field as a row of buttons; a mark at its name where it differs from the preset."""
    config, key = state.model.config, f"arch_{field}_{state.choices.language}"
    differs = field in dict(state.choices.switches)
    words = {word(value): choice(state, field, value) for value in FIELDS[field]}
    # the choice may have changed elsewhere, or have been refused
    st.session_state[key] = word(getattr(config, field))
    st.segmented_control(
        state.say("switched_label", name=state.say(f"arch_{field}")) if differs else state.say(f"arch_{field}"),
        list(words), format_func=words.__getitem__, key=key, required=True, width="content", wrap=True,
        disabled=not has_effect(field, config), help=state.say(f"arch_{field}_help"),
        on_change=lambda: take({field: read_word(field, st.session_state[key])}),
    )


def take(changes: dict[str, Value]) -> None:
    """Switch, or say why these choices do not go together and leave all as it was."""
    state = current()
    state.message = None
    try:
        state.switch(**changes)
    except ConfigError as error:
        state.message = ("error", explain_error(state.choices.language, error))


def report(state: State) -> None:
    """The prediction before and after, and Δ at every tensor."""
    with st.container(key="switchboard_report"):
        if not state.choices.switches:
            st.info(state.say("nothing_switched"))
            return
        before = comparison.unswitched(state)
        st.markdown(f"##### {state.say('switched_prediction')}")
        outcome_tables.prediction(state, comparison.outcomes(state, before), "switched_prediction",
                                  ("switched_before", "switched_after"))
        st.markdown(f"##### {state.say('switched_tensors')}")
        st.caption(state.say("switched_tensors_note"))
        outcome_tables.tensors(state, _largest_first(comparison.differences(state, before)), "switched_tensors",
                               placed=True)


def _largest_first(differences: list[comparison.Difference]) -> list[comparison.Difference]:
    """Last what only one of the models has."""
    return sorted(differences, key=lambda each: -1.0 if each.largest is None else each.largest, reverse=True)
