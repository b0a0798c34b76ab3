"""Train the presets `copy_machine` and `little_world` on pages of their grammars (`tools/grammars.py`).

    python -m tools.train_models                     both: three to four minutes of one free core
    python -m tools.train_models copy_machine        one of them

Needs PyTorch, which nothing else in the project imports, and writes assets/presets/NAME.safetensors.
Seed, schedule and one thread are fixed: on one machine, with one version of PyTorch, the files come out
bit for bit. Elsewhere sums are rounded differently, so the weights differ and the figures hold.

The weights are rounded to four decimals, which is what the board shows; the engine measures what they
reach (`tools/figures.py`), after it has given the same logits as PyTorch.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from engine import Model, ModelConfig, run
from engine.tokenizer import WordTokenizer
from engine.types import Array
from tools import figures
from tools.grammars import CopyMachine, LittleWorld

FOLDER = Path(__file__).parent.parent / "assets" / "presets"
LENGTH = 32
WARM_UP, LARGEST_GRADIENT, MOMENTS = 200, 1.0, (0.9, 0.98)
# the loss of a card is the mean over so many of the last steps
LAST_STEPS = 200
DECIMALS = 4
TOLERANCE = 1e-9
Parameters = dict[str, Tensor]


@dataclass(frozen=True)
class Course:
    """What one of the models is, what it reads, and for how long."""

    grammar: CopyMachine | LittleWorld
    heads: int
    steps: int
    # how many are read at each step
    pages: int
    rate: float
    # of the weights during the first half of the steps: it speeds up what is hard to find, and blurs attention
    decay: float
    seed: int
    measure: Callable[[Model], tuple[dict[str, float], dict[str, figures.Heads]]]
    characters: bool = False

    @property
    def config(self) -> ModelConfig:
        """The shape that both models share, RoPE cut off at the length of a page."""
        return ModelConfig(
            vocab_size=len(self.grammar.words), hidden_size=32, layers=2, heads=self.heads, mlp_size=64,
            max_positions=LENGTH,
        )


COURSES = {
    "copy_machine": Course(
        CopyMachine(), heads=2, steps=6000, pages=64, rate=0.004, decay=0.0, seed=1, measure=figures.copy_machine,
        characters=True,
    ),
    "little_world": Course(
        LittleWorld(), heads=4, steps=10000, pages=32, rate=0.006, decay=0.1, seed=1, measure=figures.little_world,
    ),
}


def drawn(config: ModelConfig, seed: int) -> Parameters:
    """Random parameters before training: norm weights 1, matrices of size 1/√(inputs), branch outputs half of it."""
    generator = torch.Generator().manual_seed(seed)
    parameters = {}
    for name, shape in config.parameter_shapes().items():
        match name.rpartition(".")[2]:
            case "weight" if "norm" in name:
                spread = 0.0
            case "weight":
                spread = 1.0 if name.startswith("embedding") else 0.1
            case matrix:
                spread = (0.5 if matrix in ("Wo", "W_down") else 1.0) / math.sqrt(shape[0])
        centre = 1.0 if "norm" in name else 0.0
        parameters[name] = (centre + spread * torch.randn(shape, generator=generator)).requires_grad_()
    return parameters


def forward(config: ModelConfig, parameters: Mapping[str, Tensor], ids: Tensor) -> Tensor:
    """Logits [B,T,V] of ids [B,T]: what `engine/forward.py` computes with RMSNorm, RoPE and ReLU."""
    def norm(name: str, x: Tensor) -> Tensor:
        return functional.rms_norm(x, x.shape[-1:], parameters[f"{name}.weight"], config.norm_epsilon)

    x = parameters["embedding.weight"][ids]
    half = torch.arange(config.head_size // 2, dtype=x.dtype)
    angles = torch.outer(torch.arange(ids.shape[1], dtype=x.dtype), config.rope_base ** (-2 * half / config.head_size))
    turns = torch.polar(torch.ones_like(angles), angles)

    def heads(matrix: str, x: Tensor) -> Tensor:
        return (x @ parameters[matrix]).unflatten(-1, (config.heads, config.head_size)).transpose(1, 2)

    def rotate(x: Tensor) -> Tensor:
        return torch.view_as_real(torch.view_as_complex(x.unflatten(-1, (-1, 2))) * turns).flatten(-2)

    for number in range(config.layers):
        layer = f"layers.{number}"
        before = norm(f"{layer}.norm1", x)
        q, k, v = (heads(f"{layer}.attention.W{letter}", before) for letter in "qkv")
        head_output = functional.scaled_dot_product_attention(rotate(q), rotate(k), v, is_causal=True)
        x = x + head_output.transpose(1, 2).flatten(-2) @ parameters[f"{layer}.attention.Wo"]
        up = norm(f"{layer}.norm2", x) @ parameters[f"{layer}.mlp.W_up"]
        x = x + up.relu() @ parameters[f"{layer}.mlp.W_down"]
    return norm("final_norm", x) @ parameters["lm_head.weight"].T


def train(course: Course) -> tuple[Parameters, float]:
    """AdamW, its rate rising and then falling along a cosine; the loss is the mean cross-entropy of all places."""
    chance, config = Random(course.seed), course.config
    numbers = {word: number for number, word in enumerate(course.grammar.words)}
    parameters = drawn(config, course.seed)
    optimizer = torch.optim.AdamW(parameters.values(), lr=course.rate, betas=MOMENTS)
    losses = []
    for step in range(course.steps):
        for group in optimizer.param_groups:
            group["lr"] = rate_at(course, step)
            group["weight_decay"] = course.decay if step < course.steps / 2 else 0.0
        pages = [course.grammar.page(chance, LENGTH + 1) for _ in range(course.pages)]
        ids = torch.tensor([[numbers[word] for word in page] for page in pages])
        logits = forward(config, parameters, ids[:, :-1])
        loss = functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters.values(), LARGEST_GRADIENT)
        optimizer.step()
        losses.append(loss.item())
        if (step + 1) % 1000 == 0:
            print(f"  step {step + 1}, loss {np.mean(losses[-LAST_STEPS:]):.4f}", flush=True)
    return parameters, float(np.mean(losses[-LAST_STEPS:]))


def rate_at(course: Course, step: int) -> float:
    """The learning rate of a step."""
    return course.rate * min(1.0, (step + 1) / WARM_UP) * (1 + math.cos(math.pi * step / course.steps)) / 2


def rounded(parameters: Parameters) -> dict[str, Array]:
    return {
        name: np.round(values.detach().double().numpy(), DECIMALS) + 0.0 for name, values in parameters.items()
    }


def check(model: Model, course: Course) -> None:
    """Assert that PyTorch and the engine give the same logits."""
    chance = Random(course.seed)
    numbers = {word: number for number, word in enumerate(course.grammar.words)}
    ids = np.array([[numbers[word] for word in course.grammar.page(chance, LENGTH)] for _ in range(course.pages)])
    parameters = {name: torch.from_numpy(array.copy()) for name, array in model.parameters.items()}
    logits = forward(model.config, parameters, torch.from_numpy(ids)).numpy()
    np.testing.assert_allclose(run(model, ids)["logits"].data, logits, rtol=0, atol=TOLERANCE)


def write(file: Path, arrays: Mapping[str, Array], notes: Mapping[str, str]) -> None:
    """The safetensors format: length of the header, header, numbers; see `engine/stored.py`."""
    header: dict[str, object] = {"__metadata__": dict(notes)}
    end = 0
    for name, array in arrays.items():
        header[name] = {"dtype": "F64", "shape": array.shape, "data_offsets": (end, end := end + array.nbytes)}
    text = json.dumps(header, ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    numbers = b"".join(array.astype("<f8").tobytes() for array in arrays.values())
    file.write_bytes(len(text).to_bytes(8, "little") + text + numbers)


def make(name: str) -> None:
    """Train one preset, measure it and write it."""
    course = COURSES[name]
    print(name, flush=True)
    start = time.perf_counter()
    trained, loss = train(course)
    words = course.grammar.words
    arrays = rounded(trained)
    model = Model(course.config, arrays, WordTokenizer(len(words), dict(enumerate(words)), course.characters))
    check(model, course)
    reached, heads = course.measure(model)
    card = {
        "steps": course.steps, "pages": course.pages, "seed": course.seed, "loss": round(loss, DECIMALS),
        "figures": {key: round(value, DECIMALS) for key, value in reached.items()}, "heads": heads,
        "trained_on": course.grammar.about, "software": f"PyTorch {torch.__version__}",
    }
    notes = {"config": asdict(course.config), "vocabulary": words, "characters": course.characters, "card": card}
    write(FOLDER / f"{name}.safetensors", arrays, {
        key: json.dumps(note, ensure_ascii=False) for key, note in notes.items()
    })
    print(f"  {time.perf_counter() - start:.0f} s", json.dumps(card, indent=2), flush=True)


def main(*names: str) -> None:
    """Make the presets of those names, or all."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    for name in names or COURSES:
        make(name)


if __name__ == "__main__":
    main(*sys.argv[1:])
