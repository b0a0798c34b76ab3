"""Make ``gpt2_variants.npz``: reference arrays of GPT-2's parts, from PyTorch.

As in ``make_reference.py``, whose helpers it uses: the tests only read the arrays,
nothing here imports the engine, and two forwards are written:

* ``traced_forward`` spells out every step; the stored tensors and gradients are its own.
* ``FusedGPT`` is an ``nn.Module`` as a PyTorch user would write it: ``nn.LayerNorm``,
  ``nn.Linear`` with packed q, k, v, ``nn.GELU``, ``scaled_dot_product_attention``, and
  a tied head that is one ``nn.Parameter`` used twice.

Before anything is written, for every variant the two must agree on values and on the
gradient of every parameter to 1e-12, and every gradient with a central difference; the
variants must differ from each other. Curves and filters are computed twice as well.
See ``README.md`` for the layout of the file.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from make_reference import (
    GRID,
    ROTATIONS,
    TOLERANCE,
    Arrays,
    Pairing,
    Tensors,
    assert_close,
    command,
    deliver,
    gradients,
)
from torch import Tensor, nn

PARAMETER_SEED = 20240611
DIRECTION_SEED = 11
SAMPLING_SEED = 5
CACHE_PROMPT = (3, 17, 3)
CACHE_STEPS = 5
IDS = [[3, 17, 3, 9, 0], [22, 5, 5, 5, 11]]
TARGETS: dict[str, tuple[str, tuple[int, ...]]] = {
    "A": ("logits", (0, 4, 7)),
    "B": ("logits", (0, 4, 3)),  # token 3 is read twice and scored: both uses meet in one row
}

GPT2: dict[str, Any] = {
    "vocab_size": 23,
    "hidden_size": 16,
    "layers": 2,
    "heads": 2,
    "mlp_size": 20,
    "norm": "layernorm",
    "norm_epsilon": 1e-5,
    "norm_placement": "pre",
    "positions": "learned",
    "max_positions": 8,
    "activation": "gelu_tanh",
    "bias": True,
    "tied_head": True,
}
ROPE: dict[str, Any] = {"positions": "rope", "rope_base": 10000.0, "rope_pairing": "interleaved"}
HALF: dict[str, Any] = {**ROPE, "rope_pairing": "half"}
CHANGES: dict[str, dict[str, Any]] = {
    "gpt2": {},
    "gelu_erf": {"activation": "gelu_erf"},
    "relu_squared": {"activation": "relu_squared"},
    "post_norm": {"norm_placement": "post"},
    "no_norm": {"norm": "none"},
    "no_positions": {"positions": "none"},
    "not_causal": {"causal": False},
    "unscaled": {"scale_scores": False},
    "no_residual": {"residual": False},
    "untied": {"tied_head": False},
    "rope": ROPE,
    "rope_backward": {**ROPE, "rope_direction": -1},
    "rope_half_rmsnorm": {**HALF, "norm": "rmsnorm"},
    "qk_norm": {**ROPE, "norm": "rmsnorm", "qk_norm": True},
    "soft_cap": {"logit_soft_cap": 15.0},
    "nanochat_like": {
        **HALF,
        "norm": "rmsnorm",
        "activation": "relu_squared",
        "qk_norm": True,
        "logit_soft_cap": 15.0,
        "tied_head": False,
        "bias": False,
    },
}
VARIANTS = {name: {**GPT2, **changes} for name, changes in CHANGES.items()}

STORED_TENSORS = (  # of the variants other than gpt2
    "layers.0.attention.weights",
    "layers.1.attention.weights",
    "logits",
    "probabilities",
)
STORED_GRADIENTS = (  # of the variants other than gpt2; all are checked
    "layers.0.norm1.weight",
    "layers.0.attention.Wq",
    "layers.1.mlp.W_up",
)
MORE_GRADIENTS: dict[str, tuple[str, ...]] = {
    "gelu_erf": ("layers.1.mlp.b_up",),
    "relu_squared": ("layers.1.mlp.b_up",),
    "post_norm": ("layers.1.norm2.bias", "final_norm.bias"),
    "no_norm": ("embedding.weight", "layers.0.attention.bo"),
    "no_positions": ("embedding.weight",),
    "not_causal": ("layers.0.attention.Wk",),
    "unscaled": ("layers.0.attention.Wk",),
    "no_residual": ("position_embedding.weight", "layers.0.attention.Wo"),
    "untied": ("embedding.weight", "lm_head.weight"),
    "rope": ("layers.0.attention.bk",),
    "rope_backward": ("layers.0.attention.bk",),
    "rope_half_rmsnorm": ("layers.0.attention.bk", "final_norm.weight"),
    "qk_norm": ("layers.0.attention.Wk", "layers.0.attention.bk"),
    "soft_cap": ("embedding.weight", "final_norm.bias"),
    "nanochat_like": ("layers.0.attention.Wk", "embedding.weight", "lm_head.weight"),
}
GRADIENT_ACTIVATIONS = (  # of gpt2, target A
    "embedding.output",
    "position_embedding.output",
    "embedding.sum",
    "layers.0.norm1.mean",
    "layers.0.norm1.centered",
    "layers.0.norm1.variance",
    "layers.0.norm1.std",
    "layers.0.norm1.normalized",
    "layers.0.norm1.output",
    "layers.0.attention.q",
    "layers.0.attention.weights",
    "layers.0.attention.output",
    "layers.0.residual1",
    "layers.0.mlp.up",
    "layers.0.mlp.activation",
    "layers.0.mlp.output",
    "layers.0.output",
    "final_norm.output",
)


@dataclass(frozen=True)
class Config:
    """What the forwards read; field names are those of ``engine.ModelConfig``."""

    vocab_size: int
    hidden_size: int
    layers: int
    heads: int
    mlp_size: int
    norm: str
    norm_epsilon: float
    norm_placement: str
    positions: str
    max_positions: int
    activation: str
    bias: bool
    tied_head: bool
    rope_base: float = 10000.0
    rope_pairing: Pairing = "interleaved"
    rope_direction: int = 1
    causal: bool = True
    scale_scores: bool = True
    residual: bool = True
    qk_norm: bool = False
    logit_soft_cap: float | None = None

    def __post_init__(self) -> None:
        """Refuse a mix whose meaning is not settled here."""
        assert self.bias or self.norm != "layernorm", "does bias=False drop the bias of LayerNorm?"

    @property
    def head_size(self) -> int:
        """Features per head."""
        return self.hidden_size // self.heads

    @property
    def score_scale(self) -> float:
        """What q · k is multiplied by."""
        return 1 / math.sqrt(self.head_size) if self.scale_scores else 1.0

    def uses(self, name: str) -> bool:
        """Whether the parameter of this name takes part in the model."""
        if name == "position_embedding.weight":
            return self.positions == "learned"
        if name == "lm_head.weight":
            return not self.tied_head
        if "norm" in name:
            return self.norm == "layernorm" or (self.norm == "rmsnorm" and name.endswith(".weight"))
        return self.bias or not name.split(".")[-1].startswith("b")


def make_parameters() -> Arrays:
    """Draw the parameters of all variants, in forward order, from one seeded generator."""
    generator = np.random.default_rng(PARAMETER_SEED)
    config = Config(**GPT2)
    vocab, hidden, mlp = config.vocab_size, config.hidden_size, config.mlp_size

    def draw(*shape: int, scale: float, mean: float = 0.0) -> np.ndarray[Any, Any]:
        values = mean + scale * generator.standard_normal(shape)
        return np.asarray(np.round(values / GRID) * GRID, dtype=np.float64)

    parameters: Arrays = {}

    def draw_norm(name: str) -> None:
        parameters[f"{name}.weight"] = draw(hidden, scale=0.3, mean=1.0)
        parameters[f"{name}.bias"] = draw(hidden, scale=0.3)

    parameters["embedding.weight"] = draw(vocab, hidden, scale=0.8)
    parameters["position_embedding.weight"] = draw(config.max_positions, hidden, scale=0.4)
    for index in range(config.layers):
        layer = f"layers.{index}"
        draw_norm(f"{layer}.norm1")
        for part in "qkvo":
            matrix = draw(hidden, hidden, scale=hidden**-0.5)
            parameters[f"{layer}.attention.W{part}"] = matrix
        for part in "qkvo":
            parameters[f"{layer}.attention.b{part}"] = draw(hidden, scale=0.3)
        draw_norm(f"{layer}.norm2")
        parameters[f"{layer}.mlp.W_up"] = draw(hidden, mlp, scale=hidden**-0.5)
        parameters[f"{layer}.mlp.b_up"] = draw(mlp, scale=0.3)
        parameters[f"{layer}.mlp.W_down"] = draw(mlp, hidden, scale=mlp**-0.5)
        parameters[f"{layer}.mlp.b_down"] = draw(hidden, scale=0.3)
    draw_norm("final_norm")
    parameters["lm_head.weight"] = draw(vocab, hidden, scale=0.7)
    return parameters


def rotate(x: Tensor, config: Config) -> Tensor:
    """Turn each pair of features by direction · position / base^(2i/D), straight from the rule."""
    length, size = x.shape[-2:]
    i = torch.arange(size // 2)
    if config.rope_pairing == "interleaved":
        first, second = 2 * i, 2 * i + 1
    else:
        first, second = i, i + size // 2
    frequencies = config.rope_base ** (-2 * i.to(x.dtype) / size)
    angles = config.rope_direction * torch.arange(length, dtype=x.dtype)[:, None] * frequencies
    cos, sin = angles.cos(), angles.sin()
    a, b = x[..., first], x[..., second]
    turned = torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)
    return turned[..., torch.cat((first, second)).argsort()]


def rotate_by_mirror(x: Tensor, config: Config) -> Tensor:
    """``rotate`` with the rotations of ``make_reference``; backward is forward in a mirror."""
    mirror = torch.ones(x.shape[-1], dtype=x.dtype)
    if config.rope_direction < 0 and config.rope_pairing == "interleaved":
        mirror[1::2] = -1
    elif config.rope_direction < 0:
        mirror[x.shape[-1] // 2 :] = -1
    return mirror * ROTATIONS[config.rope_pairing](mirror * x, config.rope_base)


def activate(x: Tensor, kind: str) -> Tensor:
    """Apply the activation, written out."""
    if kind == "gelu_tanh":
        return 0.5 * x * (1 + (math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)).tanh())
    if kind == "gelu_erf":
        return 0.5 * x * (1 + (x / math.sqrt(2)).erf())
    assert kind == "relu_squared", kind
    return torch.where(x > 0, x * x, 0.0)


def traced_forward(
    config: Config,
    parameters: Mapping[str, Tensor],
    ids: Tensor,
    nudges: Mapping[str, Tensor] | None = None,
) -> Tensors:
    """Run the model and return every named tensor, in order of computation.

    ``nudges`` are added to the tensors that they name, and all that follows sees
    the sum: this is what central differences at an activation need.
    """
    trace: Tensors = {}

    def keep(name: str, value: Tensor) -> Tensor:
        if nudges is not None and name in nudges:
            value = value + nudges[name]
        trace[name] = value
        return value

    def affine(x: Tensor, name: str, weight: str, bias: str) -> Tensor:
        product = x @ parameters[f"{name}.{weight}"]
        return product + parameters[f"{name}.{bias}"] if config.bias else product

    def norm(name: str, x: Tensor) -> Tensor:
        if config.norm == "none":
            return x
        if config.norm == "rmsnorm":
            mean_square = keep(f"{name}.mean_square", x.square().mean(-1))
            rms = keep(f"{name}.rms", (mean_square + config.norm_epsilon).sqrt())
            normalized = keep(f"{name}.normalized", x / rms.unsqueeze(-1))
            return keep(f"{name}.output", normalized * parameters[f"{name}.weight"])
        assert config.norm == "layernorm", config.norm
        mean = keep(f"{name}.mean", x.mean(-1))
        centered = keep(f"{name}.centered", x - mean.unsqueeze(-1))
        variance = keep(f"{name}.variance", centered.square().mean(-1))
        std = keep(f"{name}.std", (variance + config.norm_epsilon).sqrt())
        normalized = keep(f"{name}.normalized", centered / std.unsqueeze(-1))
        scaled = normalized * parameters[f"{name}.weight"]
        return keep(f"{name}.output", scaled + parameters[f"{name}.bias"])

    def attention(name: str, x: Tensor) -> Tensor:
        q, k, v = (keep(f"{name}.{part}", affine(x, name, f"W{part}", f"b{part}")) for part in "qkv")

        def split(x: Tensor) -> Tensor:
            return x.view(*x.shape[:-1], config.heads, config.head_size).transpose(1, 2)

        q = keep(f"{name}.q_heads", split(q))
        k = keep(f"{name}.k_heads", split(k))
        v = keep(f"{name}.v_heads", split(v))
        if config.positions == "rope":
            q = keep(f"{name}.q_rotated", rotate(q, config))
            k = keep(f"{name}.k_rotated", rotate(k, config))
        if config.qk_norm:
            q = q / (q.square().mean(-1, keepdim=True) + config.norm_epsilon).sqrt()
            k = k / (k.square().mean(-1, keepdim=True) + config.norm_epsilon).sqrt()
        dot = keep(f"{name}.dot", q @ k.mT)
        scores = keep(f"{name}.scores", dot * config.score_scale)
        if config.causal:
            future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
            scores = keep(f"{name}.masked_scores", scores.masked_fill(future, -math.inf))
        weights = keep(f"{name}.weights", scores.softmax(-1))
        heads = keep(f"{name}.head_output", weights @ v)
        merged = keep(f"{name}.merged", heads.transpose(1, 2).flatten(-2))
        return keep(f"{name}.output", affine(merged, name, "Wo", "bo"))

    def mlp(name: str, x: Tensor) -> Tensor:
        up = keep(f"{name}.up", affine(x, name, "W_up", "b_up"))
        active = keep(f"{name}.activation", activate(up, config.activation))
        return keep(f"{name}.output", affine(active, name, "W_down", "b_down"))

    def add(x: Tensor, change: Tensor) -> Tensor:
        return x + change if config.residual else change

    x = keep("embedding.output", F.embedding(ids, parameters["embedding.weight"]))
    if config.positions == "learned":
        rows = parameters["position_embedding.weight"][: ids.shape[1]]
        x = keep("embedding.sum", x + keep("position_embedding.output", rows))
    for index in range(config.layers):
        layer = f"layers.{index}"
        if config.norm_placement == "pre":
            r = add(x, attention(f"{layer}.attention", norm(f"{layer}.norm1", x)))
            r = keep(f"{layer}.residual1", r)
            x = add(r, mlp(f"{layer}.mlp", norm(f"{layer}.norm2", r)))
        else:
            r = norm(f"{layer}.norm1", add(x, attention(f"{layer}.attention", x)))
            x = norm(f"{layer}.norm2", add(r, mlp(f"{layer}.mlp", r)))
        x = keep(f"{layer}.output", x)
    head = parameters["embedding.weight" if config.tied_head else "lm_head.weight"]
    logits = norm("final_norm", x) @ head.T
    if config.logit_soft_cap is not None:
        logits = config.logit_soft_cap * (logits / config.logit_soft_cap).tanh()
    keep("logits", logits)
    keep("probabilities", logits.softmax(-1))
    return trace


class SquaredReLU(nn.Module):
    """ReLU, then square."""

    def forward(self, x: Tensor) -> Tensor:
        """Apply it."""
        return F.relu(x).square()


class FusedBlock(nn.Module):
    """A block with PyTorch's own layers; q, k and v come from one packed ``nn.Linear``."""

    def __init__(self, config: Config) -> None:
        """Make the layers."""
        super().__init__()
        hidden, mlp = config.hidden_size, config.mlp_size
        self.config = config
        self.norm1 = make_norm(config)
        self.qkv = nn.Linear(hidden, 3 * hidden, bias=config.bias)
        self.out = nn.Linear(hidden, hidden, bias=config.bias)
        self.norm2 = make_norm(config)
        self.up = nn.Linear(hidden, mlp, bias=config.bias)
        self.activation = {
            "gelu_tanh": nn.GELU(approximate="tanh"),
            "gelu_erf": nn.GELU(),
            "relu_squared": SquaredReLU(),
        }[config.activation]
        self.down = nn.Linear(mlp, hidden, bias=config.bias)

    def attention(self, x: Tensor, name: str, seen: Tensors) -> Tensor:
        """Attend; the weights come from attending to an identity in place of the values."""
        config = self.config
        batch, length, _ = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, config.heads, -1).permute(2, 0, 3, 1, 4)
        if config.positions == "rope":
            q, k = rotate_by_mirror(q, config), rotate_by_mirror(k, config)
        if config.qk_norm:
            q, k = (F.rms_norm(z, (config.head_size,), eps=config.norm_epsilon) for z in (q, k))
        identity = torch.eye(length, dtype=x.dtype).expand(batch, config.heads, -1, -1)
        scale = None if config.scale_scores else 1.0
        heads, weights = (
            F.scaled_dot_product_attention(q, k, z, is_causal=config.causal, scale=scale)
            for z in (v, identity)
        )
        seen[f"{name}.head_output"] = heads
        seen[f"{name}.weights"] = weights
        seen[f"{name}.output"] = self.out(heads.transpose(1, 2).reshape(batch, length, -1))
        return seen[f"{name}.output"]

    def forward(self, x: Tensor, name: str, seen: Tensors) -> Tensor:
        """Run the block."""
        skip = 1.0 if self.config.residual else 0.0
        if self.config.norm_placement == "post":
            x = self.norm1(skip * x + self.attention(x, f"{name}.attention", seen))
            x = self.norm2(skip * x + self.down(self.activation(self.up(x))))
        else:
            normed = [(f"{name}.norm1.output", self.norm1(x))]
            x = skip * x + self.attention(self.norm1(x), f"{name}.attention", seen)
            seen[f"{name}.residual1"] = x
            normed.append((f"{name}.norm2.output", self.norm2(x)))
            x = skip * x + self.down(self.activation(self.up(self.norm2(x))))
            if self.config.norm != "none":
                seen.update(normed)
        seen[f"{name}.output"] = x
        return x


class FusedGPT(nn.Module):
    """The whole model as an ``nn.Module``."""

    def __init__(self, config: Config) -> None:
        """Make the layers, in float64; a tied head is the very parameter of the embedding."""
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocab_size, config.hidden_size)
        if config.positions == "learned":
            self.position_embedding = nn.Embedding(config.max_positions, config.hidden_size)
        self.layers = nn.ModuleList(FusedBlock(config) for _ in range(config.layers))
        self.final_norm = make_norm(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.double()
        if config.tied_head:
            self.lm_head.weight = self.embedding.weight

    def forward(self, ids: Tensor) -> Tensors:
        """Run the model; return what its layers let one see."""
        seen: Tensors = {}
        x = self.embedding(ids)
        if self.config.positions == "learned":
            x = x + self.position_embedding(torch.arange(ids.shape[1]))
            seen["embedding.sum"] = x
        for index, block in enumerate(self.layers):
            x = block(x, f"layers.{index}", seen)
        logits = self.lm_head(self.final_norm(x))
        if self.config.norm != "none":
            seen["final_norm.output"] = self.final_norm(x)
        cap = self.config.logit_soft_cap
        seen["logits"] = logits if cap is None else cap * torch.tanh(logits / cap)
        seen["probabilities"] = F.log_softmax(seen["logits"], dim=-1).exp()
        return seen

    def load(self, parameters: Mapping[str, Tensor]) -> None:
        """Copy the parameters in; every tensor of the module must be met."""
        state: Tensors = {}
        for name, value in parameters.items():
            if "attention" not in name and "mlp" not in name:
                state[name] = value
        if self.config.tied_head:
            state["lm_head.weight"] = parameters["embedding.weight"]
        for index in range(self.config.layers):
            attention, mlp = f"layers.{index}.attention", f"layers.{index}.mlp"
            for kind in "Wb" if self.config.bias else "W":
                key = {"W": "weight", "b": "bias"}[kind]
                packed = [parameters[f"{attention}.{kind}{part}"] for part in "qkv"]
                state[f"layers.{index}.qkv.{key}"] = torch.cat(packed, dim=-1).t()
                state[f"layers.{index}.out.{key}"] = parameters[f"{attention}.{kind}o"].t()
                state[f"layers.{index}.up.{key}"] = parameters[f"{mlp}.{kind}_up"].t()
                state[f"layers.{index}.down.{key}"] = parameters[f"{mlp}.{kind}_down"].t()
        self.load_state_dict({name: value.detach() for name, value in state.items()}, strict=True)

    def gradients(self, target: Tensor) -> Tensors:
        """Return the gradient at every parameter, unpacked and turned to rows times matrices."""
        self.zero_grad()
        target.backward(retain_graph=True)
        found: Tensors = {}
        for name, parameter in self.named_parameters():  # a tied head is listed once
            gradient = parameter.grad
            assert gradient is not None, name
            parts = name.split(".")
            if parts[-2] not in ("qkv", "out", "up", "down"):
                found[name] = gradient
                continue
            layer, kind = ".".join(parts[:2]), {"weight": "W", "bias": "b"}[parts[-1]]
            if parts[-2] == "qkv":
                for part, value in zip("qkv", gradient.t().chunk(3, dim=-1), strict=True):
                    found[f"{layer}.attention.{kind}{part}"] = value
            elif parts[-2] == "out":
                found[f"{layer}.attention.{kind}o"] = gradient.t()
            else:
                found[f"{layer}.mlp.{kind}_{parts[-2]}"] = gradient.t()
        return {name: value.clone() for name, value in found.items()}


def make_norm(config: Config) -> nn.Module:
    """Return the norm as PyTorch has it."""
    if config.norm == "layernorm":
        return nn.LayerNorm(config.hidden_size, eps=config.norm_epsilon)
    if config.norm == "rmsnorm":
        return nn.RMSNorm(config.hidden_size, eps=config.norm_epsilon)
    return nn.Identity()


def check_rotations() -> None:
    """Compare with the written rule in scalars: pair i at position t turns (1, 0)."""
    for pairing, direction in itertools.product(("interleaved", "half"), (1, -1)):
        rope = {"rope_pairing": pairing, "rope_direction": direction}
        config = Config(**{**GPT2, **ROPE, **rope})
        size = config.head_size
        for i in range(size // 2):
            first, second = (2 * i, 2 * i + 1) if pairing == "interleaved" else (i, i + size // 2)
            x = torch.zeros(5, size, dtype=torch.float64)
            x[:, first] = 1.0
            expected = torch.zeros_like(x)
            for t in range(5):
                angle = direction * t / config.rope_base ** (2 * i / size)
                expected[t, first], expected[t, second] = math.cos(angle), math.sin(angle)
            assert_close(f"{rope} pair {i}", rotate(x, config), expected, TOLERANCE)
            assert_close(f"{rope} pair {i}", rotate_by_mirror(x, config), expected, TOLERANCE)


def check_gradients(
    variant: str,
    config: Config,
    parameters: Mapping[str, Tensor],
    ids: Tensor,
    target: tuple[str, tuple[int, ...]],
    found: Mapping[str, Tensor],
) -> None:
    """Compare each gradient with a central difference along a random direction."""
    generator = torch.Generator().manual_seed(DIRECTION_SEED)
    name_of_target, index = target
    step = 1e-5
    for name, gradient in found.items():
        direction = torch.randn(gradient.shape, generator=generator, dtype=gradient.dtype)
        ends = []
        for sign in (1.0, -1.0):
            nudge = {name: sign * step * direction}
            moved = {key: value + nudge.get(key, 0.0) for key, value in parameters.items()}
            with torch.no_grad():
                ends.append(traced_forward(config, moved, ids, nudge)[name_of_target][index])
        slope = (ends[0] - ends[1]) / (2 * step)
        assert_close(f"{variant} d/d {name}", (gradient * direction).sum(), slope, 1e-7)


def make_variant(variant: str, config: Config, all_parameters: Mapping[str, Tensor], ids: Tensor) -> Arrays:
    """Run one variant both ways; verify; return its arrays."""
    arrays: Arrays = {}
    parameters = {name: value for name, value in all_parameters.items() if config.uses(name)}
    trace = traced_forward(config, parameters, ids)
    module = FusedGPT(config)
    module.load(parameters)
    fused = module(ids)
    for name, value in fused.items():
        assert_close(f"{variant} {name}", trace[name], value, TOLERANCE)
    if config.activation == "relu_squared":  # differences must not straddle the kink
        for name, value in trace.items():
            assert not name.endswith(".up") or value.abs().min().item() > 1e-4, name

    for name in trace if variant == "gpt2" else STORED_TENSORS:
        arrays[f"{variant}/tensors/{name}"] = trace[name].detach().numpy()
    whole = variant == "gpt2"
    sources = {**parameters, **({name: trace[name] for name in GRADIENT_ACTIVATIONS} if whole else {})}
    for label, target in TARGETS.items():
        name_of_target, index = target
        found = gradients(trace[name_of_target][index], sources)
        assert found.keys() == sources.keys(), "a parameter has no effect"
        expected = module.gradients(fused[name_of_target][index])
        assert expected.keys() == parameters.keys()
        for name, value in expected.items():
            assert_close(f"{variant} {label} {name}", found[name], value, TOLERANCE)
        check_gradients(variant, config, parameters, ids, target, found)
        if whole:
            stored = tuple(found) if label == "A" else ("embedding.weight",)
        else:
            stored = (*STORED_GRADIENTS, *MORE_GRADIENTS[variant]) if label == "A" else ()
        for name in parameters if not whole else found:  # in forward order
            if name in stored:
                arrays[f"{variant}/gradients/{label}/{name}"] = found[name].numpy()
        assert set(stored) - found.keys() <= {"layers.0.norm1.weight"}, variant  # no norm, no weight
    return arrays


def make_curves() -> Arrays:
    """Return both GELUs and their derivatives at 41 points, from ``F.gelu`` and autograd."""
    x = (torch.arange(-20, 21, dtype=torch.float64) * 0.3).requires_grad_()
    arrays: Arrays = {"curves/x": x.detach().numpy()}
    for kind, approximate in (("gelu_tanh", "tanh"), ("gelu_erf", "none")):
        value = F.gelu(x, approximate=approximate)
        (derivative,) = torch.autograd.grad(value.sum(), x)
        own = activate(x, kind)
        (own_derivative,) = torch.autograd.grad(own.sum(), x)
        scalars = []
        for z in x.tolist():
            if kind == "gelu_erf":  # Φ(z) + z φ(z)
                phi = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
                cdf = math.erfc(-z / math.sqrt(2)) / 2
                scalars.append((z * cdf, cdf + z * phi))
            else:
                t = math.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * z**3))
                inner = math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * z * z)
                scalars.append((z * (1 + t) / 2, (1 + t) / 2 + z * (1 - t * t) * inner / 2))
        expected = torch.tensor(scalars, dtype=torch.float64)
        for values, derivatives in ((own, own_derivative), expected.unbind(-1)):
            assert_close(f"{kind} value", value.detach(), values.detach(), 1e-14)
            assert_close(f"{kind} derivative", derivative, derivatives, 1e-14)
        arrays[f"curves/{kind}/value"] = value.detach().numpy()
        arrays[f"curves/{kind}/derivative"] = derivative.numpy()
    return arrays


SAMPLING_CASES: dict[str, dict[str, Any]] = {
    f"temperature_{temperature}{suffix}": {"temperature": temperature, **filters}
    for temperature in (0.7, 1.0, 2.0)
    for suffix, filters in (
        ("", {}),
        ("_top_k_3", {"top_k": 3}),
        ("_top_p_0.8", {"top_p": 0.8}),
        ("_top_p_0.9", {"top_p": 0.9}),
    )
}
SAMPLING_CASES["temperature_1.0_top_k_3_top_p_0.8"] = {
    "temperature": 1.0,
    "top_k": 3,
    "top_p": 0.8,
}


def filtered_probabilities(
    logits: Tensor, temperature: float, top_k: int | None = None, top_p: float | None = None
) -> Tensor:
    """Temperature, then top-k, then top-p of what top-k left, renormalised.

    Order: falling logit, lower id first among equals (a stable sort). Top-p keeps a token
    while the mass before it is below p.
    """
    ordered, ids = torch.sort(logits, descending=True, stable=True)
    ordered = ordered / temperature
    if top_k is not None:
        ordered = torch.where(torch.arange(len(ordered)) < top_k, ordered, -math.inf)
    mass = ordered.softmax(-1)
    if top_p is not None:
        before = torch.cat((torch.zeros(1, dtype=mass.dtype), mass.cumsum(-1)[:-1]))
        assert (before - top_p).abs().min().item() > 1e-4, "rounding could decide"
        mass = torch.where(before < top_p, mass, 0.0)
        mass = mass / mass.sum()
    return torch.zeros_like(mass).scatter(0, ids, mass)


def filtered_in_words(
    logits: list[float], temperature: float, top_k: int | None = None, top_p: float | None = None
) -> list[float]:
    """``filtered_probabilities`` token by token, without tensors."""
    odds = {token: math.exp((z - max(logits)) / temperature) for token, z in enumerate(logits)}
    ranking = sorted(odds, key=lambda token: (-logits[token], token))[:top_k]
    total = math.fsum(odds[token] for token in ranking)
    kept: list[int] = []
    for token in ranking:
        if top_p is None or math.fsum(odds[other] for other in kept) / total < top_p or not kept:
            kept.append(token)
        else:
            break
    total = math.fsum(odds[token] for token in kept)
    return [odds[token] / total if token in kept else 0.0 for token in odds]


def make_sampling() -> Arrays:
    """Return probabilities after the filters, for three vectors of logits."""
    generator = np.random.default_rng(SAMPLING_SEED)
    vectors = {
        "six": np.array([2.0, 1.0, 0.5, 0.5, -1.0, -math.inf]),
        "random": np.round(2 * generator.standard_normal(30) / GRID) * GRID,
        "ties": np.round(2 * generator.standard_normal(30)) + 0.0,  # no negative zeros
    }
    assert len(set(vectors["random"])) == 30
    arrays: Arrays = {}
    for name, vector in vectors.items():
        arrays[f"sampling/{name}/logits"] = vector
        for case, arguments in SAMPLING_CASES.items():
            result = filtered_probabilities(torch.from_numpy(vector), **arguments)
            again = filtered_in_words(vector.tolist(), **arguments)
            expected = torch.tensor(again, dtype=torch.float64)
            assert_close(f"{name} {case}", result, expected, 1e-15)
            assert torch.equal(result > 0, expected > 0), f"{name} {case}: other tokens"
            arrays[f"sampling/{name}/{case}"] = result.numpy()
    return arrays


class CachedGPT:
    """``FusedGPT`` one position at a time: keys and values of earlier positions are kept and not made again."""

    def __init__(self, model: FusedGPT) -> None:
        """Begin with nothing kept."""
        self.model = model
        self.kept: dict[tuple[int, str], Tensor] = {}
        self.length = 0

    def attention(self, index: int, x: Tensor) -> Tensor:
        """Attend from the new position to all that are kept, and to itself."""
        config, block = self.model.config, self.model.layers[index]
        q, k, v = block.qkv(x).view(1, 1, 3, config.heads, -1).permute(2, 0, 3, 1, 4)
        if config.positions == "rope":  # a row of zeros for each position before, so that this one turns by its own
            q, k = (rotate_by_mirror(F.pad(z, (0, 0, self.length, 0)), config)[..., -1:, :] for z in (q, k))
        if config.qk_norm:
            q, k = (F.rms_norm(z, (config.head_size,), eps=config.norm_epsilon) for z in (q, k))
        for name, new in (("k", k), ("v", v)):
            before = self.kept.get((index, name), new[:, :, :0])
            self.kept[index, name] = torch.cat((before, new), dim=2)
        weights = (q @ self.kept[index, "k"].mT * config.score_scale).softmax(-1)
        heads: Tensor = weights @ self.kept[index, "v"]
        return block.out(heads.transpose(1, 2).reshape(1, 1, -1))

    def logits(self, token: int) -> Tensor:
        """Read one more token; return the logits [V] of what may follow."""
        model, config = self.model, self.model.config
        x = model.embedding(torch.tensor([[token]]))
        if config.positions == "learned":
            x = x + model.position_embedding(torch.tensor([self.length]))
        skip = 1.0 if config.residual else 0.0
        for index, block in enumerate(model.layers):
            if config.norm_placement == "post":
                x = block.norm1(skip * x + self.attention(index, x))
                x = block.norm2(skip * x + block.down(block.activation(block.up(x))))
            else:
                x = skip * x + self.attention(index, block.norm1(x))
                x = skip * x + block.down(block.activation(block.up(block.norm2(x))))
        self.length += 1
        logits = model.lm_head(model.final_norm(x))[0, 0]
        cap = config.logit_soft_cap
        return logits if cap is None else cap * torch.tanh(logits / cap)


def make_cache(variant: str, config: Config, all_parameters: Mapping[str, Tensor]) -> Arrays:
    """Return the text that the largest logit continues, and the logits that a cache gave at each step."""
    model = FusedGPT(config)
    model.load({name: value for name, value in all_parameters.items() if config.uses(name)})
    cached, text, steps = CachedGPT(model), list(CACHE_PROMPT), []
    with torch.no_grad():
        logits = [cached.logits(token) for token in text][-1]
        for _ in range(CACHE_STEPS):
            full = model(torch.tensor([text]))["logits"][0, -1]
            assert_close(f"{variant} cache, step {len(steps)}", logits, full, TOLERANCE)
            steps.append(logits)
            text.append(int(logits.argmax()))
            logits = cached.logits(text[-1])
    stacked = torch.stack(steps)
    best = stacked.topk(2, dim=-1).values
    assert (best[:, 0] - best[:, 1]).min().item() > 1e-6, "rounding could decide"
    return {f"cache/{variant}/ids": np.array(text), f"cache/{variant}/logits": stacked.numpy()}


def make_reference() -> Arrays:
    """Compute, verify and return every array of the reference file."""
    check_rotations()
    settings = {
        "variants": VARIANTS,
        "parameter_seed": PARAMETER_SEED,
        "targets": TARGETS,
        "sampling_cases": SAMPLING_CASES,
    }
    ids = torch.tensor(IDS)
    drawn = make_parameters()
    arrays: Arrays = {"settings": np.array(json.dumps(settings)), "ids": ids.numpy()}
    for name, array in drawn.items():
        arrays[f"parameters/{name}"] = array
    parameters = {name: torch.from_numpy(array).requires_grad_() for name, array in drawn.items()}
    for variant, settings_of_variant in VARIANTS.items():
        config = Config(**settings_of_variant)
        arrays |= make_variant(variant, config, parameters, ids)
        if config.causal:
            arrays |= make_cache(variant, config, parameters)
    for one, other in itertools.combinations(VARIANTS, 2):
        difference = arrays[f"{one}/tensors/logits"] - arrays[f"{other}/tensors/logits"]
        assert np.abs(difference).max() > 1e-4, f"{one} and {other} are alike"
    return arrays | make_curves() | make_sampling()


def main() -> None:
    """Make the file, or with ``--check`` compare it with what would be made."""
    options = command("gpt2_variants.npz").parse_args()
    torch.set_num_threads(1)
    deliver(options, make_reference())


if __name__ == "__main__":
    main()
