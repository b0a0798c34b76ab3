"""The built-in models: those of the two articles, two that were trained here, and one with room to play."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from engine import stored
from engine.bounds import LARGEST_SEED
from engine.config import ModelConfig
from engine.errors import ConfigError
from engine.model import Model
from engine.tokenizer import WordTokenizer
from engine.types import Array

TRAINED = ("copy_machine", "little_world")
NAMES = ("cats", "today", *TRAINED, "scratch")
SENTENCES: Mapping[str, str] = MappingProxyType({
    "cats": "Cats sit on", "today": "今天天气真", "copy_machine": "planetplan", "little_world": "cats sit on",
    "scratch": "red fox and red fox",
})
CANDIDATES: Mapping[str, tuple[int, ...]] = MappingProxyType({
    "cats": (90, 91, 92), "today": (5120, 6144, 7168), "copy_machine": (), "little_world": (), "scratch": (),
})
# what a trained preset has learned → a sentence whose prediction shows it
EXAMPLES: Mapping[str, Mapping[str, str]] = MappingProxyType({
    "copy_machine": MappingProxyType({"short_block": "planetplan", "long_block": "lumberjackslumber"}),
    "little_world": MappingProxyType({
        "fact": "cats sit on", "agreement": "the cat with the dogs",
        "recall": "tom has a ball . mia has a kite . tom likes the", "chant": "ding dong hey ding dong",
    }),
})
# sentences of the same length, between which a lesson carries activations
OTHERS: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "cats": ("Cats on on",), "today": ("今好天气真",), "copy_machine": ("planitplan",),
    "little_world": ("frogs sit on", "the cats with the dogs"), "scratch": ("red owl and red fox",),
})
# a text that training pairs are cut from; it begins with the sentence and what should follow it
TEXTS: Mapping[str, str] = MappingProxyType({
    "cats": "Cats sit on mats Cats sit on chairs Cats sit on mats", "today": "今天天气真好今天天气真棒今天天气真差",
    "copy_machine": "planetplanetplanetplanet",
    "little_world": "cats sit on mats . the cat with the dogs sits on the mat .",
    "scratch": "red fox and red fox and blue owl sleeps here now then red fox runs",
})
# what should follow each sentence, where a lesson compares the prediction with it
TARGETS: Mapping[str, int] = MappingProxyType({
    "cats": 90, "today": 5120, "copy_machine": 4, "little_world": 36, "scratch": 4,
})

_CATS_WORDS = {12: "Cats", 45: "sit", 78: "on", 90: "mats", 91: "chairs", 92: "volcano"}
_TODAY_WORDS = {1024: "今", 2048: "天", 3072: "气", 4096: "真", 5120: "好", 6144: "棒", 7168: "差"}
_FOLDER = Path(__file__).parent.parent / "assets" / "presets"
_SCRATCH_WORDS = dict(enumerate(
    "red blue fox owl and or runs sleeps here there now then one two we they".split()
))


@dataclass(frozen=True)
class Card:
    """What a trained preset has learned from, for how long, and what it reached.

    `pages` were read at each of the `steps`, drawn from `seed`; `loss` is the mean cross-entropy over
    the last of them. `figures` are shares and mean attention weights, measured on other pages; `heads`
    says which heads, as (layer, head) counted from 0, the attention is of. Source: `tools/train_models.py`.
    """

    trained_on: str
    steps: int
    pages: int
    seed: int
    loss: float
    figures: Mapping[str, float]
    heads: Mapping[str, tuple[tuple[int, int], ...]]
    software: str


def load(name: str, seed: int = 1) -> Model:
    """Return a built-in model; `seed` chooses the random weights of `scratch`.

    Raises `ConfigError` for an unknown name or a seed outside 0…9999.
    """
    if name not in NAMES:
        raise ConfigError("preset", f"no preset {name!r}; there are {NAMES}", preset=name, presets=NAMES)
    if not 0 <= seed <= LARGEST_SEED:
        raise ConfigError("seed", f"seed {seed} is outside 0…{LARGEST_SEED}", seed=seed, last=LARGEST_SEED)
    match name:
        case "cats":
            return _cats()
        case "today":
            return _today()
        case "scratch":
            return _scratch(seed)
    return _trained(name)[0]


def card(name: str) -> Card | None:
    """Return what is known of a preset's training; None for one whose weights no training made."""
    return _trained(name)[1] if name in TRAINED else None


@lru_cache(maxsize=1)
def _cats() -> Model:
    """The *Cats sit on* model: weights set by hand so that the arithmetic can be followed.

    Source: forward walkthrough, "Token Embedding", "LM Head", "Q/K/V" and "MLP". Rows that the
    article does not print are zero.
    """
    config = ModelConfig(vocab_size=256, hidden_size=4, layers=2, heads=2, mlp_size=8)
    embedding, head = np.zeros((256, 4)), np.zeros((256, 4))
    embedding[[0, 12, 45, 78, 255]] = [
        [0.1, 0.3, 0.2, 0.5], [0.2, -0.1, 0.4, 0.3], [-0.3, 0.5, 0.1, 0.2],
        [0.1, 0.2, -0.2, 0.6], [0.4, 0.1, 0.3, 0.2],
    ]
    head[[90, 91]] = [[0.2, 0.4, 0.1, 0.3], [-0.2, 0.1, 0.4, -0.1]]
    identity = np.eye(4)
    fixed = {
        "weight": np.ones(4), "Wq": identity, "Wk": identity, "Wv": identity, "Wo": identity,
        "W_up": np.hstack([identity, -identity]), "W_down": np.vstack([identity, identity]),
    }
    parameters = {name: fixed[name.rpartition(".")[2]] for name in config.parameter_shapes()}
    tables = {"embedding.weight": embedding, "lm_head.weight": head}
    return Model(config, parameters | tables, WordTokenizer(256, _CATS_WORDS))


@lru_cache(maxsize=1)
def _today() -> Model:
    """The 今天天气真 model: a GPT-2 block whose weights were solved so that the printed numbers come true.

    Source: second article, 4.1; `tools/make_today.py` solves. Rows of tokens without a part in it are zero.
    """
    config = ModelConfig(
        vocab_size=50257, hidden_size=12, layers=1, heads=1, mlp_size=48, norm="layernorm",
        norm_epsilon=1e-5, positions="learned", max_positions=32, activation="gelu_tanh", bias=True,
        tied_head=True, dropout=0.1,
    )
    with np.load(_FOLDER / "today.npz", allow_pickle=False) as stored:
        parameters = dict(stored)
    table = np.zeros((config.vocab_size, config.hidden_size))
    table[parameters.pop("embedding.rows")] = parameters.pop("embedding.values")
    tokenizer = WordTokenizer(config.vocab_size, _TODAY_WORDS, characters=True)
    return Model(config, {**parameters, "embedding.weight": table}, tokenizer)


@lru_cache(maxsize=len(TRAINED))
def _trained(name: str) -> tuple[Model, Card]:
    """A model with the weights that `tools/train_models.py` made, and its card."""
    arrays, notes = stored.read(_FOLDER / f"{name}.safetensors")
    told: dict[str, Any] = {key: json.loads(note) for key, note in notes.items()}
    config = ModelConfig(**told["config"])
    tokenizer = WordTokenizer(config.vocab_size, dict(enumerate(told["vocabulary"])), told["characters"])
    heads = {work: tuple((layer, head) for layer, head in places) for work, places in told["card"]["heads"].items()}
    proxies = {"figures": MappingProxyType(told["card"]["figures"]), "heads": MappingProxyType(heads)}
    return Model(config, arrays, tokenizer), Card(**{**told["card"], **proxies})


@lru_cache(maxsize=32)
def _scratch(seed: int) -> Model:
    """A model with C=8, H=2, D=4, F=12, N=2, V=16 and normal weights rounded to two decimals."""
    config = ModelConfig(vocab_size=16, hidden_size=8, layers=2, heads=2, mlp_size=12)
    generator = np.random.default_rng(seed)
    parameters: dict[str, Array] = {}
    for name, shape in config.parameter_shapes().items():
        noise = generator.standard_normal(shape)
        spread = 0.1 if "norm" in name else 1 / np.sqrt(shape[-1])
        centre = 1.0 if "norm" in name else 0.0
        parameters[name] = np.round(centre + spread * noise, 2)
    return Model(config, parameters, WordTokenizer(16, _SCRATCH_WORDS))
