"""Solve for the weights of the preset `today`, so that the second article's example comes true.

    python -m tools.make_today            write assets/presets/today.npz

The article prints the first numbers of four embedding rows, the 15 visible scores before softmax, the
first two numbers of the last query, and three probabilities. Everything else is drawn once from a
seed and rounded; then two linear systems are solved: queries whose products with the keys are the
scores (five equations for each position of a head of twelve), and head rows whose products with the
last normalised vector are the logits that the probabilities ask for.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from engine import Model, ModelConfig, run
from engine.types import Array

FILE = Path(__file__).parent.parent / "assets" / "presets" / "today.npz"
SEED = 20240315
IDS = (1024, 2048, 2048, 3072, 4096)
# 今 天 气 真: the numbers that the article prints, then drawn ones
PRINTED_ROWS = {1024: (0.1, -0.2, 0.3), 2048: (0.4, 0.1, -0.5), 3072: (0.2, 0.7, 0.1), 4096: (-0.3, 0.5, 0.2)}
PRINTED_QUERY = (0.8, 0.1)
SCORES = ((2.3,), (0.5, 3.1), (0.1, 2.2, 1.8), (0.2, 1.1, 2.0, 2.5), (0.3, 0.8, 0.9, 1.2, 1.5))
# 好 棒 差
PROBABILITIES = {5120: 0.85, 6144: 0.10, 7168: 0.02}
CONFIG = ModelConfig(
    vocab_size=50257, hidden_size=12, layers=1, heads=1, mlp_size=48, norm="layernorm", norm_epsilon=1e-5,
    positions="learned", max_positions=32, activation="gelu_tanh", bias=True, tied_head=True,
)


def draw(generator: np.random.Generator) -> dict[str, Array]:
    """Parameters drawn and rounded to two decimals; embedding rows that the article does not use are zero."""
    parameters: dict[str, Array] = {}
    for name, shape in CONFIG.parameter_shapes().items():
        if name == "embedding.weight":
            continue
        centre = 1.0 if "norm" in name and name.endswith("weight") else 0.0
        spread = 0.1 if "norm" in name or name.rpartition(".")[2].startswith("b") else 0.35
        parameters[name] = np.round(centre + spread * generator.standard_normal(shape), 2)
    table = np.zeros((CONFIG.vocab_size, CONFIG.hidden_size))
    for token, printed in PRINTED_ROWS.items():
        rest = np.round(0.4 * generator.standard_normal(CONFIG.hidden_size - len(printed)), 2)
        table[token] = [*printed, *rest]
    return {"embedding.weight": table, **parameters}


def solve_queries(parameters: dict[str, Array], generator: np.random.Generator) -> Array:
    """Wq such that q·k/√D are the printed scores and the last query begins as printed."""
    trace = run(Model(CONFIG, parameters), [list(IDS)])
    x, keys = (trace[f"layers.0.{name}"].data[0] for name in ("norm1.output", "attention.k"))
    width, length = CONFIG.hidden_size, len(IDS)
    queries = np.zeros((length, width))
    for row, visible in enumerate(SCORES):
        future = np.round(generator.uniform(0, 2, length - len(visible)), 1)
        targets = np.sqrt(CONFIG.head_size) * np.array([*visible, *future])
        equations, values = keys, targets
        if row == length - 1:
            equations = np.vstack([keys, np.eye(width)[:len(PRINTED_QUERY)]])
            values = np.array([*targets, *PRINTED_QUERY])
        queries[row] = np.linalg.lstsq(equations, values, rcond=None)[0]
    bias = parameters["layers.0.attention.bq"]
    free = np.round(0.2 * generator.standard_normal((width, width)), 2)
    solved = np.linalg.lstsq(x, queries - bias, rcond=None)[0]
    # what a matrix does to vectors other than the five inputs is free
    return np.asarray(solved + free - np.linalg.pinv(x) @ (x @ free))


def solve_head_rows(parameters: dict[str, Array]) -> Array:
    """The table with rows for 好, 棒 and 差 whose logits give the printed probabilities."""
    trace = run(Model(CONFIG, parameters), [list(IDS)])
    last = trace["final_norm.output"].data[0, -1]
    others = np.exp(trace["logits"].data[0, -1])
    others[list(PROBABILITIES)] = 0.0
    total = others.sum() / (1 - sum(PROBABILITIES.values()))
    table = parameters["embedding.weight"].copy()
    for token, probability in PROBABILITIES.items():
        table[token] = np.log(probability * total) * last / (last @ last)
    return table


def make() -> dict[str, Array]:
    """All parameters of the preset."""
    generator = np.random.default_rng(SEED)
    parameters = draw(generator)
    with_queries = {**parameters, "layers.0.attention.Wq": solve_queries(parameters, generator)}
    return {**with_queries, "embedding.weight": solve_head_rows(with_queries)}


def main() -> None:
    """Write the weights, of the large table only the rows that are not zero."""
    parameters = make()
    table = parameters.pop("embedding.weight")
    used = np.flatnonzero(table.any(axis=1))
    FILE.parent.mkdir(exist_ok=True)
    np.savez_compressed(FILE, **{**parameters, "embedding.rows": used, "embedding.values": table[used]})


if __name__ == "__main__":
    main()
