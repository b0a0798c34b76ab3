"""The words of a board that depend on the model: its sizes, what it does, and sentences of its own."""

from __future__ import annotations

from collections.abc import Mapping

from engine import ModelConfig
from ui import hiding, naming, runs, text
from ui.view import View


def traits(config: ModelConfig) -> tuple[str, ...]:
    """What the architecture is like, in words that the ends of catalogue keys are made of."""
    normed = config.norm != "none"
    return (
        *([config.norm, f"{config.norm_placement}_norm"] if normed else ["no_norm"]),
        config.positions if config.positions != "none" else "no_positions",
        config.activation if config.activation != "none" else "no_activation",
        "residual" if config.residual else "no_residual", "causal" if config.causal else "not_causal",
        "scaled" if config.scale_scores else "unscaled", "tied" if config.tied_head else "untied",
        *(["biased"] if config.bias else []), "qk_norm" if config.qk_norm else "no_qk_norm",
        *([] if config.logit_soft_cap is None else ["capped"]),
    )


def title(key: str, view: View) -> str:
    """A title, with the model's sizes and choices filled in; this model may have one of its own."""
    own = f"{key}_{view.preset}"
    return text.say(view.language, own if own in text.catalogue(view.language) else key, **_values(view))


def note(key: str, view: View) -> str | None:
    """A section's guidance: the sentence of the key, and those that are true of such models, or of this one.

    After the first come invitations, but none to what a link leaves out.
    """
    invited = [name for name in hiding.INVITED if name not in view.hidden]
    ends = (*invited, *traits(view.baseline.model.config), view.preset)
    keys = [own for own in (key, *(f"{key}_{end}" for end in ends)) if own in text.catalogue(view.language)]
    return text.joined(view.language, [text.say(view.language, own, **_values(view)) for own in keys]) or None


def verdict(key: str, view: View) -> str:
    """What a test says; models of some traits have a sentence of their own."""
    keys = [f"{key}_{trait}" for trait in traits(view.baseline.model.config)]
    said = text.catalogue(view.language)
    return next((said[own] for own in keys if own in said), said[key])


def sign(key: str, view: View) -> str:
    """A word by its key, or a sign that is the same in every language.

    `{activation}` is the model's own, `{T}` the number of positions; `{token}` and `{rival}` are those that the
    lesson asks about.
    """
    said = text.catalogue(view.language).get(key, key)
    for name in ("activation", "token", "rival", "T"):
        if f"{{{name}}}" in said:
            said = said.replace(f"{{{name}}}", str(_values(view)[name]))
    return said


def _values(view: View) -> Mapping[str, object]:
    config = view.baseline.model.config
    return {
        **runs.sizes(view.baseline), "pairs": naming.pairs_text(view.language, config),
        "cap": f"{config.logit_soft_cap or 0:g}",
        "activation": text.say(view.language, f"flow_{config.activation}"), "number": view.layer + 1, "head": view.head,
        **_asked(view),
    }


def _asked(view: View) -> Mapping[str, str]:
    """The tokens that the lesson asks about, and the token at the position that it looks at."""
    if view.question is None:
        return {}
    tokens = {"token": view.question.token, "rival": view.question.rival}
    if view.position is not None:
        tokens["at"] = view.ids[view.position]
    return {name: naming.token_label(view.baseline.model, token) for name, token in tokens.items()}
