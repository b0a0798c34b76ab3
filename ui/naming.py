"""How tensors, axes and cells are called and coloured on the board."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from engine import Model, ModelConfig, Tensor
from engine.operands import pair_members
from engine.optimizers import ADAMW, KINDS
from engine.plan import GRADIENT
from ui.text import listed, say, visible

# what the steps of optimizers are named after
STEP = "optimizer."
SEQUENCE_AXES = frozenset({"position", "query", "key"})
AXIS_LETTERS: Mapping[str, str] = MappingProxyType({
    "batch": "B", "position": "T", "query": "T", "key": "T", "feature": "C", "head": "H",
    "head_feature": "D", "hidden": "F", "vocabulary": "V", "pair": "D/2", "score": "n",
    "table_position": "max_positions", "place": "T", "unit": "width", "sample_query": "queries", "sample_key": "keys",
    "entry": "n", "point": "n", "mask": "M", "share": "n",
    "printed": "n", "whole": "n", "rank": "V", "draw": "n", "step": "n",
})
_CELL_PREFIX: Mapping[str, str] = MappingProxyType({
    "feature": "c", "head_feature": "d", "hidden": "f", "pair": "p", "batch": "b", "head": "h",
    "score": "s", "unit": "u", "sample_query": "q", "sample_key": "k", "entry": "x", "point": "x", "mask": "m",
    "share": "w",
})
# axes whose places have names of their own: the tokens of the second article's sentence, and −3 … 3
_LABELS: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "printed": tuple(f"{token} {place}" for place, token in enumerate("今天天气真")),
    "whole": ("−3", "−2", "−1", "0", "1", "2", "3"),
})
# axes along which people count from one
_COUNTED: Mapping[str, str] = MappingProxyType({"rank": "r", "draw": "n", "step": "n"})
# tensors that hold token ids, and those in which a token that was cut has −∞
_TOKENS = frozenset({
    "choosing.order", "choosing.drawn", "generating.drawn", "targets", "system.prompt", "system.text",
})
CUT = ("choosing.tempered", "choosing.kept_k")
# ids and ranks of the logit lens, which each layer has
_LENS_TOKENS = ("lens.leading", "lens.embedding.leading")
_LENS_MOVES = "lens.climb"
_LENS_RANKS = ("lens.rank", "lens.embedding.rank", _LENS_MOVES)
_HUES = (
    ("heads.", "weights"), ("lens.norm", "norm"), ("lens.", "logits"), ("wrote.", "logits"),
    ("attention.q", "q"), ("attention.Wq", "q"), ("attention.k", "k"), ("attention.Wk", "k"),
    ("attention.v", "v"), ("attention.Wv", "v"), ("attention.head_output", "v"), ("attention.merged", "v"),
    ("attention.bq", "q"), ("attention.bk", "k"), ("attention.bv", "v"), ("attention.bo", "v"),
    ("attention.Wo", "v"), ("attention.output", "v"), ("attention.drop", "v"),
    ("attention.", "weights"), ("weights", "weights"),
    ("causal_mask", "weights"), ("mlp.", "mlp"), ("norm", "norm"), ("embedding", "stream"),
    ("residual", "stream"), ("stream", "stream"), ("logits", "logits"), ("probabilities", "logits"),
    ("lm_head", "logits"), ("contributions", "logits"), ("loss", "logits"),
    (".q", "q"), (".k_", "k"), ("scores", "weights"), ("gelu.", "mlp"), ("dropout.draws", "none"), ("dropout.", "mlp"),
    ("choosing.", "logits"), ("generating.", "logits"),
)
_LIMITS: Mapping[str, tuple[float, float]] = MappingProxyType({
    "sqrt_head_size": (0.1, 8.0), "norm_epsilon": (0.0, 1.0), "rope.positions": (0.0, 20.0),
    "rope.offset": (0.0, 20.0), "softmax_demo.factor": (0.1, 20.0), "scaled.factor": (0.1, 50.0),
    "linear.k": (-4.0, 4.0), "linear.layers.relu": (0.0, 1.0), "linear.layers.gelu": (0.0, 1.0),
    "attention_linear.factor": (-2.0, 6.0), "why_residuals.gain": (0.1, 5.0), "why_sqrt.seed": (0.0, 99.0),
    "positions.rope.offset": (0.0, 20.0), "positions.rope.positions": (0.0, 20.0),
    "layernorm.stretch": (0.1, 10.0), "layernorm.shift": (-5.0, 5.0), "layernorm.own.x": (-10.0, 10.0),
    "gelu.own.x": (-4.0, 4.0), "gelu.table.x": (-6.0, 6.0), "dropout.p": (0.0, 0.9), "dropout.seed": (0.0, 99.0),
    "choosing.temperature": (0.0, 2.0), "choosing.top_k": (1.0, 50.0), "choosing.top_p": (0.0, 1.0),
    "choosing.seed": (0.0, 999.0), "loss.vocabulary_size": (1.0, 100_000.0), "optimizer.adamw.step": (1.0, 100.0),
})
# what is made of the other input of `engine.programs.attention_linear`
_TURNED_ROUND = ("attention_linear.other", "attention_linear.held.v.", "attention_linear.held.v_heads.")
_WHOLE_NUMBERS = frozenset({
    "input_ids", "why_sqrt.seed", "dropout.seed", "dropout.kept", "choosing.seed", "choosing.top_k", "choosing.counts",
    "choosing.others.counts", "loss.vocabulary_size", "optimizer.adamw.step", "rope.offset", "rope.positions",
    "positions.rope.offset", "positions.rope.positions",
})
# running sums, numbers to draw with, and what the filters leave of probabilities
_SHARES = frozenset({
    *(f"choosing.{name}" for name in ("shares", "mass_before", "kept_p", "kept_mass", "running_sum", "u")),
    "choosing.others.shares", "choosing.others.kept_p", "generating.u", "dropout.draws",
})


def differentiated(tensor: str) -> str | None:
    """The tensor by which something is differentiated; None for what is no gradient."""
    is_gradient = tensor.startswith(GRADIENT) and tensor != f"{GRADIENT}seed"
    return tensor.removeprefix(GRADIENT) if is_gradient else None


def goal(tensor: Tensor) -> str:
    """What a gradient is the gradient of."""
    return str(tensor.node.attributes.get("goal", "loss")).rpartition(".")[2]


# what the lesson on heads makes of weights
_HEAD_SHARES = (".received", "on_itself", "on_previous", "on_first", ".mark", ".share_of_readers", ".share_of_queries")


def short_name(tensor: str, goal: str = "loss") -> str:
    """The name without its layer, and without its module where it is the attention: `scores`, `∂loss/∂scores`."""
    variable = differentiated(tensor)
    if variable is not None:
        return f"∂{goal}/∂{short_name(variable)}"
    if tensor.startswith(STEP):
        return _of_step(tensor.removeprefix(STEP))
    inner = tensor.split(".", 2)[2] if tensor.startswith("layers.") else tensor
    # the layer has an output of its own
    return inner if inner == "attention.output" else inner.removeprefix("attention.")


def _of_step(name: str) -> str:
    """What an optimizer's step computes, without the parameter, of which a board follows one: `adamw.m_hat`."""
    kind, _, rest = name.partition(".")
    if kind in KINDS and rest:
        return f"{kind}.{rest.rpartition('.')[2]}"
    return "clipped" if name.endswith(".gradient") else name


def hue(tensor: str) -> str:
    """The family of a tensor, which keeps one colour through all lessons; a gradient has its tensor's."""
    own = differentiated(tensor) or tensor
    inner = own.split(".", 2)[2] if own.startswith("layers.") else own
    if inner == "output":
        return "stream"
    return next((name for part, name in _HUES if part in inner), "none")


def is_share(tensor: str) -> bool:
    """Whether the numbers are shares of one: attention weights and probabilities."""
    ends = (".weights", "_weights", "probabilities", "_probability", *_HEAD_SHARES)
    return tensor in _SHARES or (differentiated(tensor) is None and tensor.endswith(ends))


def limits(tensor: str) -> list[float]:
    """The range of a slider that makes sense for the tensor's cells."""
    usual = (0.0, 1.0) if is_share(tensor) or _is_square(tensor) else (0.0, 20.0) if is_whole(tensor) else (-2.0, 2.0)
    return list(_LIMITS.get(tensor, usual))


def _is_square(tensor: str) -> bool:
    """Whether the numbers are squares that an optimizer keeps, which are not negative."""
    return tensor.startswith(f"{STEP}{ADAMW}.") and tensor.endswith((".v_before", ".squared", ".v", ".v_hat"))


def is_whole(tensor: str) -> bool:
    """Whether the numbers are whole, such as token ids."""
    ends = (".gelu.relu_slopes", ".gelu.dead", *_LENS_RANKS)
    return tensor in _WHOLE_NUMBERS or is_token(tensor) or tensor.endswith(ends)


def is_token(tensor: str) -> bool:
    """Whether the numbers are token ids that a lesson computes, which the board shows as tokens."""
    return tensor in _TOKENS or tensor.endswith(_LENS_TOKENS)


def look(tensor: str) -> dict[str, Any]:
    """How the numbers are written and shaded: as amounts, shares, whole numbers, tokens or places gained."""
    return {
        "scale": "share" if is_share(tensor) else "diverging", "integer": is_whole(tensor), "names": is_token(tensor),
        **({"moves": True} if tensor.endswith(_LENS_MOVES) else {}),
    }


def axis_name(language: str, axis: str) -> str:
    """The axis in the reader's language."""
    return say(language, f"axis_{axis}")


def axes_text(language: str, names: Sequence[str]) -> str:
    """`query × key` in the reader's language."""
    return " × ".join(axis_name(language, axis) for axis in names)


def axes(tensor: Tensor) -> tuple[str, ...]:
    """The tensor's axes; those of a few tensors are called after what stands there.

    Rows of a position table are places of the table, not tokens of the sentence, and softmax makes
    weights of scores. A gradient has its tensor's.
    """
    name = differentiated(str(tensor.node.name)) or str(tensor.node.name)
    if name.endswith("position_embedding.weight"):
        return tuple("table_position" if axis == "position" else axis for axis in tensor.axes)
    if name.startswith("system."):
        # the tokens stand in the cells
        return tuple("place" if axis == "position" else axis for axis in tensor.axes)
    if name.startswith(("block.", "gelu.table.")):
        own = "printed" if name.startswith("block.") else "whole"
        return tuple(own if axis in ("score", "entry") else axis for axis in tensor.axes)
    if is_share(name):
        return tuple("share" if axis == "score" else axis for axis in tensor.axes)
    return tensor.axes


def shape_text(tensor: Tensor) -> str:
    """`[B, T, C] = [1, 3, 4]`; a scalar has no shape to show."""
    if not tensor.axes:
        return ""
    letters = ", ".join(AXIS_LETTERS[axis] for axis in axes(tensor))
    return f"[{letters}] = [{', '.join(map(str, tensor.shape))}]"


def cell_label(model: Model, ids: Sequence[int], axis: str, index: int) -> str:
    """What one index of an axis is called: a token, `c2`, `d0`, `f7`; a row of a position table its number."""
    if axis in SEQUENCE_AXES:
        # a cache holds positions before those of the run
        return token_label(model, ids[index]) if index < len(ids) else str(index)
    if axis == "vocabulary":
        return token_label(model, index)
    if axis in _LABELS:
        return _LABELS[axis][index]
    if axis in _COUNTED:
        return f"{_COUNTED[axis]}{index + 1}"
    return str(index) if axis in ("table_position", "place") else f"{_CELL_PREFIX[axis]}{index}"


def token_label(model: Model, token_id: int) -> str:
    """The token's text with spaces shown; `#id` where it has none."""
    return f"#{token_id}" if model.tokenizer is None else visible(model.tokenizer.label(token_id))


def with_id(label: str, token_id: int) -> str:
    """A token's name with its id behind it, which some have for a name."""
    return label if label == f"#{token_id}" else f"{label} · {token_id}"


def standing(ids: Sequence[int], name: str) -> tuple[int, ...]:
    """The tokens as a tensor has them: what comes of an input whose rows are turned round has the last one first."""
    return tuple(reversed(ids)) if any(part in f"{name}." for part in _TURNED_ROUND) else tuple(ids)


def cell_title(model: Model, ids: Sequence[int], tensor: Tensor, name: str, index: Sequence[int]) -> str:
    """`L1·scores[h0, on, sit]`: the cell by its labels, batch left out, repeated tokens told apart."""
    ids = standing(ids, name)
    title = long_name(name, goal(tensor))
    parts = [
        _cell_part(model, ids, axis, part) for axis, part in zip(axes(tensor), index, strict=True) if axis != "batch"
    ]
    return f"{title}[{', '.join(parts)}]" if parts else title


def long_name(tensor: str, goal: str = "loss") -> str:
    """The short name with the layer, counted from 1, before it: `L1·scores`, `∂loss/∂L1·scores`."""
    variable = differentiated(tensor)
    if variable is not None:
        return f"∂{goal}/∂{long_name(variable)}"
    short = short_name(tensor)
    return f"L{int(tensor.split('.')[1]) + 1}·{short}" if tensor.startswith("layers.") else short


def _cell_part(model: Model, ids: Sequence[int], axis: str, index: int) -> str:
    label = cell_label(model, ids, axis, index)
    is_repeated = axis in SEQUENCE_AXES and index < len(ids) and ids.count(ids[index]) > 1
    return f"{index}:{label}" if is_repeated else label


def axis_labels(model: Model, ids: Sequence[int], tensor: Tensor) -> list[list[str]]:
    """One label per index for every axis; positions are numbered, so that no two are alike."""
    ids = standing(ids, str(tensor.node.name))
    return [
        [
            f"{index}:{cell_label(model, ids, axis, index)}" if axis in SEQUENCE_AXES
            else cell_label(model, ids, axis, index)
            for index in range(size)
        ]
        for axis, size in zip(axes(tensor), tensor.shape, strict=True)
    ]


def pairs_text(language: str, config: ModelConfig) -> str:
    """The pairing by name with its pairs: `half: (d0, d2), (d1, d3)`."""
    pairing, size = config.rope_pairing, config.head_size
    members = (pair_members(pair, pairing, size) for pair in range(size // 2))
    return say(language, f"pairs_of_{pairing}",
               pairs=listed(language, [f"(d{first}, d{second})" for first, second in members]))
