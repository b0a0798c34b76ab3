"""The engine's forward pass as plain NumPy: the same calls on the same arrays, and nothing recorded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from engine import Model, ModelConfig
from engine.types import Array, Integers


@dataclass(frozen=True)
class Constants:
    """What does not depend on parameters or ids; the engine keeps these in its plan."""

    epsilon: Array
    sqrt_head_size: Array
    causal_mask: Array
    positions: Array
    offset: Array
    frequencies: Array


def constants(config: ModelConfig, length: int, dtype: np.dtype[np.floating]) -> Constants:
    """The constants for a sentence of `length` tokens."""
    D = config.head_size
    future = np.triu(np.ones((length, length), dtype=bool), 1)
    arrays = (
        np.array(config.norm_epsilon), np.sqrt(D), np.where(future, -np.inf, 0.0), np.arange(length),
        np.array(0.0), config.rope_base ** (-2.0 * np.arange(D // 2) / D),
    )
    return Constants(*(np.array(array, dtype=dtype) for array in arrays))


def forward(model: Model, fixed: Constants, ids: Integers) -> tuple[Array, Array]:
    """Return logits and probabilities [B,T,V] of ids [B,T]; RoPE pairs are neighbours."""
    parameters, config = model.parameters, model.config
    angles = (fixed.positions + fixed.offset).reshape(-1, 1) * fixed.frequencies
    turn = np.cos(angles), np.sin(angles)
    stream = parameters["embedding.weight"][ids]
    for number in range(config.layers):
        stream = layer(parameters, f"layers.{number}", config.heads, fixed, turn, stream)
    normed = rms_norm(stream, fixed.epsilon, parameters["final_norm.weight"])
    logits = normed @ parameters["lm_head.weight"].swapaxes(-1, -2)
    return logits, softmax(logits)


def layer(parameters: Mapping[str, Array], name: str, heads: int, fixed: Constants,
          turn: tuple[Array, Array], x: Array) -> Array:
    """r = x + attention(norm1(x)); y = r + mlp(norm2(r))."""
    normed = rms_norm(x, fixed.epsilon, parameters[f"{name}.norm1.weight"])
    r = x + attention(parameters, f"{name}.attention", heads, fixed, turn, normed)
    normed = rms_norm(r, fixed.epsilon, parameters[f"{name}.norm2.weight"])
    activation = np.maximum(normed @ parameters[f"{name}.mlp.W_up"], 0)
    y: Array = r + activation @ parameters[f"{name}.mlp.W_down"]
    return y


def attention(parameters: Mapping[str, Array], name: str, heads: int, fixed: Constants,
              turn: tuple[Array, Array], x: Array) -> Array:
    """merge(softmax(q·k / √D + mask) · v) · Wo."""
    batch, length, width = x.shape
    q, k, v = (
        (x @ parameters[f"{name}.{matrix}"]).reshape(batch, length, heads, width // heads).swapaxes(1, 2)
        for matrix in ("Wq", "Wk", "Wv")
    )
    dot = rotate(q, *turn) @ rotate(k, *turn).swapaxes(-1, -2)
    weights = softmax(dot / fixed.sqrt_head_size + fixed.causal_mask)
    merged = (weights @ v).swapaxes(1, 2).reshape(batch, length, width)
    output: Array = merged @ parameters[f"{name}.Wo"]
    return output


def rotate(x: Array, cosines: Array, sines: Array) -> Array:
    """a' = a·cos − b·sin, b' = a·sin + b·cos for every pair of neighbours."""
    a, b = x[..., 0::2], x[..., 1::2]
    turned = np.empty_like(x)
    turned[..., 0::2] = a * cosines - b * sines
    turned[..., 1::2] = a * sines + b * cosines
    return turned


def rms_norm(x: Array, epsilon: Array, weight: Array) -> Array:
    """x / √(mean(x²) + ε) · weight."""
    mean_square = np.vecdot(x, x, axis=-1) / x.shape[-1]  # type: ignore[call-overload]  # stubs lack axis
    normed: Array = x / np.sqrt(mean_square + epsilon).reshape(*x.shape[:-1], 1) * weight
    return normed


def softmax(x: Array) -> Array:
    """exp(x − max) / Σ, with the engine's two guards against rows in which all is masked."""
    largest = np.maximum.reduce(x, axis=-1)
    if not np.isfinite(largest).all():
        largest = np.where(np.isneginf(largest), 0, largest)
    exponential = np.exp(x - largest.reshape(*x.shape[:-1], 1))
    total = np.add.reduce(exponential, axis=-1).reshape(*x.shape[:-1], 1)
    if total.all():
        shares: Array = exponential / total
        return shares
    return np.where(total == 0, 0.0, exponential / np.where(total == 0, 1.0, total))
