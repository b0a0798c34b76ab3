"""Tables of the lessons that look inside: a line for each stage of the logit lens, and for each part of a logit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from engine import ModelConfig
from engine.programs.wrote import SIDES
from ui.layout import Grid, Line, Say, grid


@dataclass(frozen=True)
class ByStage:
    """A number of the lens at every position, after the embedding and after each layer."""

    name: str

    def __call__(self, config: ModelConfig, say: Say) -> Iterator[Line]:
        if self.name != "climb":
            start = "stage_embedding_sum" if config.positions == "learned" else "stage_embedding"
            yield say(start), grid(f"lens.embedding.{self.name}")
        for layer in range(config.layers):
            yield say("stage_lens_layer", number=layer + 1), grid(f"layers.{layer}.lens.{self.name}")


def stages(config: ModelConfig, say: Say) -> list[str]:
    """What the stages of the lens are called."""
    return [label for label, _ in ByStage("rank")(config, say)]


def parts(config: ModelConfig, say: Say) -> Iterator[Line]:
    """Every part of the logit at the chosen position: of the token, of its rival, and the difference."""
    for label, name, head in named_parts(config, say):
        yield label, sides(name, **({} if head is None else {"head": head}))


def named_parts(config: ModelConfig, say: Say) -> Iterator[tuple[str, str, int | None]]:
    """Label, tensor and head of each part, in the order in which they are added to the stream.

    In the tensor's name `SIDE` stands for the token, the rival or the difference.
    """
    yield say("flow_embedding"), "wrote.SIDE.embedding", None
    if config.positions == "learned":
        yield say("flow_positions"), "wrote.SIDE.positions", None
    for layer in range(config.layers):
        here, number = f"layers.{layer}.wrote.SIDE", layer + 1
        for head in range(config.heads):
            yield say("written_head", number=number, head=head), f"{here}.heads", head
        if config.bias:
            yield say("written_bo", number=number), f"{here}.bo", None
        yield say("written_mlp", number=number), f"{here}.mlp", None
        if config.bias:
            yield say("written_b_down", number=number), f"{here}.b_down", None
    if config.norm == "layernorm":
        yield say("written_norm_bias"), "wrote.SIDE.norm_bias", None
    yield say("written_by_hand"), "wrote.SIDE.by_hand", None


def sides(name: str, **fixed: int | str) -> tuple[Grid, ...]:
    """A number of the split at the chosen position: of the token, of its rival, and the difference."""
    places = (("position", "chosen"), *fixed.items())
    return tuple(Grid(name.replace("SIDE", side), fixed=places) for side in SIDES)
