"""The switchboard: every choice of architecture as a control, and what the switches changed."""

from __future__ import annotations

import streamlit as st

from engine import ConfigError
from ui import comparison, runs
from ui.state import State, current
from ui.switches import COMBINATIONS, FIELDS, Value, combination, has_effect, matches, read_word, word
from ui.text import explain_error

TABLE_HEIGHT = 420


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
        _prediction(state, comparison.outcomes(state, before))
        st.markdown(f"##### {state.say('switched_tensors')}")
        st.caption(state.say("switched_tensors_note"))
        _tensors(state, comparison.differences(state, before))


def _prediction(state: State, outcomes: list[comparison.Outcome]) -> None:
    st.dataframe(
        {
            "token": [_named(outcome) for outcome in outcomes],
            "before": [100 * outcome.before for outcome in outcomes],
            "after": [100 * outcome.after for outcome in outcomes],
            "delta": [f"{100 * (outcome.after - outcome.before):+.2f}".replace("-", "−") for outcome in outcomes],
        },
        column_config={
            "token": state.say("switched_token"),
            **{
                name: st.column_config.ProgressColumn(
                    state.say(f"switched_{name}"), format="%.2f%%", min_value=0.0, max_value=100.0,
                ) for name in ("before", "after")
            },
            "delta": st.column_config.TextColumn(state.say("switched_points")),
        },
        key="switched_prediction", alt=state.say("switched_prediction"),
    )


def _named(outcome: comparison.Outcome) -> str:
    """The token with its id, which some have for a name."""
    own = f"#{outcome.token}"
    return own if outcome.label == own else f"{outcome.label} · {outcome.token}"


def _tensors(state: State, differences: list[comparison.Difference]) -> None:
    """The largest |Δ| first; last what only one of the models has."""
    differences = sorted(differences, key=lambda each: -1.0 if each.largest is None else each.largest, reverse=True)
    st.dataframe(
        {
            "name": [each.name for each in differences],
            "shape": [each.shape for each in differences],
            "place": [state.say(f"switched_in_{each.place}") for each in differences],
            "largest": [each.largest for each in differences],
            "where": [each.where for each in differences],
        },
        column_config={
            "name": st.column_config.TextColumn(state.say("tensor"), width="medium"),
            "shape": state.say("switched_shape"), "place": state.say("switched_place"),
            "largest": st.column_config.NumberColumn(state.say("switched_largest"), format="%.4g"),
            "where": st.column_config.TextColumn(state.say("switched_where"), width="large"),
        },
        height=TABLE_HEIGHT, placeholder="", key="switched_tensors", alt=state.say("switched_tensors"),
    )
