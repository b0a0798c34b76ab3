"""The words of a board that depend on the model: its sizes, what it does, and sentences of its own."""

from __future__ import annotations

from collections.abc import Mapping

from engine import ModelConfig
from ui import naming, runs, text
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
        *(["biased"] if config.bias else []), *(["qk_norm"] if config.qk_norm else []),
        *([] if config.logit_soft_cap is None else ["capped"]),
    )


def title(key: str, view: View) -> str:
    """A title, with the model's sizes and choices filled in."""
    return text.say(view.language, key, **_values(view))


def note(key: str, view: View) -> str | None:
    """A section's guidance: the sentence of the key, and those that are true of such models, or of this one."""
    ends = ("", *(f"_{trait}" for trait in traits(view.baseline.model.config)), f"_{view.preset}")
    keys = [f"{key}{end}" for end in ends if f"{key}{end}" in text.catalogue(view.language)]
    return " ".join(text.say(view.language, own, **_values(view)) for own in keys) or None


def sign(key: str, view: View) -> str:
    """A word by its key, or a sign that is the same in every language; `{activation}` is the model's own."""
    own = text.say(view.language, f"flow_{view.baseline.model.config.activation}")
    return text.catalogue(view.language).get(key, key.replace("{activation}", own))


def _values(view: View) -> Mapping[str, object]:
    config = view.baseline.model.config
    return {
        **runs.sizes(view.baseline), "pairs": naming.pairs_text(config), "cap": f"{config.logit_soft_cap or 0:g}",
        "activation": text.say(view.language, f"flow_{config.activation}"),
    }
