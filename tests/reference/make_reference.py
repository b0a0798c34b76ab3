"""Make ``random_model.npz``: reference arrays of a small random GPT, from PyTorch.

The tests only read the arrays; PyTorch is needed to make them again, never to
run the tests. Nothing here imports the engine. Two forwards are written:

* ``traced_forward`` keeps every intermediate tensor in the autograd graph; the
  stored tensors and gradients are its own.
* ``fused_forward`` is what a PyTorch user would write (``rms_norm``,
  ``scaled_dot_product_attention``), with the other pairing's rotation applied to
  permuted features.

Before anything is written, the two must agree on values and parameter gradients
to 1e-12, every gradient must agree with a central difference, and each rotation
with its rule in scalars.
See ``README.md`` for the layout of the file.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

Pairing = Literal["interleaved", "half"]
Tensors = dict[str, Tensor]
Arrays = dict[str, np.ndarray[Any, Any]]

PAIRINGS: tuple[Pairing, ...] = ("interleaved", "half")
PARAMETER_SEED = 20240607
DIRECTION_SEED = 7
TOLERANCE = 1e-12
GRID = 2.0**-10  # parameters are multiples of this: exact in float32, and small when zipped
IDS = [[3, 17, 3, 29, 0], [36, 5, 5, 5, 11]]
TARGETS: dict[str, tuple[str, tuple[int, ...]]] = {
    "A": ("logits", (0, 4, 7)),
    "B": ("layers.1.attention.weights", (1, 1, 3, 2)),
}
STORED_GRADIENTS: dict[str, tuple[Pairing, ...]] = {  # all are checked
    "A": ("interleaved", "half"),
    "B": ("interleaved",),
}
GRADIENT_ACTIVATIONS = (
    "embedding.output",
    "layers.0.norm1.rms",
    "layers.0.norm1.output",
    "layers.0.attention.q",
    "layers.0.attention.k",
    "layers.0.attention.v",
    "layers.0.attention.q_rotated",
    "layers.0.attention.k_rotated",
    "layers.0.attention.dot",
    "layers.0.attention.scores",
    "layers.0.attention.weights",
    "layers.0.attention.head_output",
    "layers.0.attention.output",
    "layers.0.residual1",
    "layers.0.mlp.up",
    "layers.0.mlp.activation",
    "layers.0.output",
    "final_norm.output",
)


@dataclass(frozen=True)
class Config:
    """The sizes of the model; field names are those of ``engine.ModelConfig``."""

    vocab_size: int = 37
    hidden_size: int = 32
    layers: int = 2
    heads: int = 2
    mlp_size: int = 24
    norm: str = "rmsnorm"
    norm_epsilon: float = 1e-6
    positions: str = "rope"
    rope_base: float = 10000.0
    activation: str = "relu"
    bias: bool = False
    tied_head: bool = False

    @property
    def head_size(self) -> int:
        """Features per head."""
        return self.hidden_size // self.heads


def make_parameters(config: Config) -> Arrays:
    """Draw every parameter, in forward order, from one seeded generator."""
    generator = np.random.default_rng(PARAMETER_SEED)
    vocab, hidden, mlp = config.vocab_size, config.hidden_size, config.mlp_size

    def draw(*shape: int, scale: float, mean: float = 0.0) -> np.ndarray[Any, Any]:
        values = mean + scale * generator.standard_normal(shape)
        return np.asarray(np.round(values / GRID) * GRID, dtype=np.float64)

    parameters = {"embedding.weight": draw(vocab, hidden, scale=1.0)}
    for index in range(config.layers):
        layer = f"layers.{index}"
        parameters[f"{layer}.norm1.weight"] = draw(hidden, scale=0.3, mean=1.0)
        for matrix in ("Wq", "Wk", "Wv", "Wo"):
            parameters[f"{layer}.attention.{matrix}"] = draw(hidden, hidden, scale=hidden**-0.5)
        parameters[f"{layer}.norm2.weight"] = draw(hidden, scale=0.3, mean=1.0)
        parameters[f"{layer}.mlp.W_up"] = draw(hidden, mlp, scale=hidden**-0.5)
        parameters[f"{layer}.mlp.W_down"] = draw(mlp, hidden, scale=mlp**-0.5)
    parameters["final_norm.weight"] = draw(hidden, scale=0.3, mean=1.0)
    parameters["lm_head.weight"] = draw(vocab, hidden, scale=hidden**-0.5)
    return parameters


def frequencies(x: Tensor, base: float) -> Tensor:
    """Angles [T, D/2] of the rotary embedding: position times base^(-2i/D)."""
    length, size = x.shape[-2:]
    exponents = torch.arange(0, size, 2, dtype=x.dtype) / size
    return torch.outer(torch.arange(length, dtype=x.dtype), base**-exponents)


def rotate_interleaved(x: Tensor, base: float) -> Tensor:
    """Rotate neighbours (2i, 2i+1) as complex numbers (the LLaMA way)."""
    angles = frequencies(x, base)
    turns = torch.polar(torch.ones_like(angles), angles)
    pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * turns).flatten(-2)


def rotate_half(x: Tensor, base: float) -> Tensor:
    """Rotate features (i, i + D/2) with swapped halves (the GPT-NeoX way)."""
    angles = frequencies(x, base).repeat(1, 2)
    first, second = x.chunk(2, dim=-1)
    return x * angles.cos() + torch.cat((-second, first), dim=-1) * angles.sin()


def rotate_interleaved_by_halves(x: Tensor, base: float) -> Tensor:
    """``rotate_interleaved`` by way of ``rotate_half``: even features first, then odd."""
    halves = torch.cat((x[..., 0::2], x[..., 1::2]), dim=-1)
    return torch.stack(rotate_half(halves, base).chunk(2, dim=-1), dim=-1).flatten(-2)


def rotate_half_by_pairs(x: Tensor, base: float) -> Tensor:
    """``rotate_half`` by way of ``rotate_interleaved``: the halves zipped into neighbours."""
    zipped = torch.stack(x.chunk(2, dim=-1), dim=-1).flatten(-2)
    turned = rotate_interleaved(zipped, base)
    return torch.cat((turned[..., 0::2], turned[..., 1::2]), dim=-1)


Rotation = Callable[[Tensor, float], Tensor]
ROTATIONS: dict[Pairing, Rotation] = {"interleaved": rotate_interleaved, "half": rotate_half}
OTHER_ROTATIONS: dict[Pairing, Rotation] = {
    "interleaved": rotate_interleaved_by_halves,
    "half": rotate_half_by_pairs,
}


def check_rotations(config: Config) -> None:
    """Compare with the written rule: pair i at position t turns (1, 0) by +t / base^(2i/D)."""
    size, base = config.head_size, config.rope_base
    for pairing in PAIRINGS:
        for i in range(size // 2):
            first, second = (2 * i, 2 * i + 1) if pairing == "interleaved" else (i, i + size // 2)
            x = torch.zeros(5, size, dtype=torch.float64)
            x[:, first] = 1.0
            expected = torch.zeros_like(x)
            for t in range(5):
                expected[t, first] = math.cos(t / base ** (2 * i / size))
                expected[t, second] = math.sin(t / base ** (2 * i / size))
            for rotate in (ROTATIONS[pairing], OTHER_ROTATIONS[pairing]):
                assert_close(f"{pairing} pair {i}", rotate(x, base), expected, TOLERANCE)


def traced_forward(
    config: Config,
    parameters: Mapping[str, Tensor],
    ids: Tensor,
    pairing: Pairing,
    nudges: Mapping[str, Tensor] | None = None,
) -> Tensors:
    """Run the model and return every named tensor, in order of computation.

    ``nudges`` are added to the tensors that they name, and all that follows sees
    the sum: this is what central differences at an activation need.
    """
    trace: Tensors = {}
    rotate = ROTATIONS[pairing]

    def keep(name: str, value: Tensor) -> Tensor:
        if nudges is not None and name in nudges:
            value = value + nudges[name]
        trace[name] = value
        return value

    def split(x: Tensor) -> Tensor:
        return x.view(*x.shape[:-1], config.heads, config.head_size).transpose(1, 2)

    def norm(name: str, x: Tensor) -> Tensor:
        mean_square = keep(f"{name}.mean_square", x.square().mean(-1))
        rms = keep(f"{name}.rms", (mean_square + config.norm_epsilon).sqrt())
        normalized = keep(f"{name}.normalized", x / rms.unsqueeze(-1))
        return keep(f"{name}.output", normalized * parameters[f"{name}.weight"])

    def attention(name: str, x: Tensor) -> Tensor:
        q, k, v = (keep(f"{name}.{part}", x @ parameters[f"{name}.W{part}"]) for part in "qkv")
        q = keep(f"{name}.q_heads", split(q))
        k = keep(f"{name}.k_heads", split(k))
        v = keep(f"{name}.v_heads", split(v))
        q = keep(f"{name}.q_rotated", rotate(q, config.rope_base))
        k = keep(f"{name}.k_rotated", rotate(k, config.rope_base))
        dot = keep(f"{name}.dot", q @ k.mT)
        scores = keep(f"{name}.scores", dot / math.sqrt(config.head_size))
        future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        masked = keep(f"{name}.masked_scores", scores.masked_fill(future, -math.inf))
        weights = keep(f"{name}.weights", masked.softmax(-1))
        heads = keep(f"{name}.head_output", weights @ v)
        merged = keep(f"{name}.merged", heads.transpose(1, 2).flatten(-2))
        return keep(f"{name}.output", merged @ parameters[f"{name}.Wo"])

    def mlp(name: str, x: Tensor) -> Tensor:
        up = keep(f"{name}.up", x @ parameters[f"{name}.W_up"])
        active = keep(f"{name}.activation", up.relu())
        return keep(f"{name}.output", active @ parameters[f"{name}.W_down"])

    x = keep("embedding.output", F.embedding(ids, parameters["embedding.weight"]))
    for index in range(config.layers):
        layer = f"layers.{index}"
        r = x + attention(f"{layer}.attention", norm(f"{layer}.norm1", x))
        r = keep(f"{layer}.residual1", r)
        x = keep(f"{layer}.output", r + mlp(f"{layer}.mlp", norm(f"{layer}.norm2", r)))
    logits = keep("logits", F.linear(norm("final_norm", x), parameters["lm_head.weight"]))
    keep("probabilities", logits.softmax(-1))
    return trace


def fused_forward(
    config: Config, parameters: Mapping[str, Tensor], ids: Tensor, pairing: Pairing
) -> Tensors:
    """Run the model with PyTorch's fused functions; return what they let one see.

    Attention weights come from attending to an identity matrix in place of the values.
    """
    seen: Tensors = {}
    rotate = OTHER_ROTATIONS[pairing]
    batch, length = ids.shape
    identity = torch.eye(length, dtype=parameters["lm_head.weight"].dtype)
    identity = identity.expand(batch, config.heads, length, length)

    def norm(name: str, x: Tensor) -> Tensor:
        weight = parameters[f"{name}.weight"]
        seen[f"{name}.output"] = F.rms_norm(x, weight.shape, weight, config.norm_epsilon)
        return seen[f"{name}.output"]

    x = F.embedding(ids, parameters["embedding.weight"])
    for index in range(config.layers):
        layer = f"layers.{index}"
        own = {
            name.removeprefix(f"{layer}.attention."): value
            for name, value in parameters.items()
            if name.startswith(f"{layer}.attention.")
        }
        packed = norm(f"{layer}.norm1", x) @ torch.cat((own["Wq"], own["Wk"], own["Wv"]), dim=1)
        q, k, v = packed.view(batch, length, 3, config.heads, -1).permute(2, 0, 3, 1, 4)
        q, k = rotate(q, config.rope_base), rotate(k, config.rope_base)
        heads = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        weights = F.scaled_dot_product_attention(q, k, identity, is_causal=True)
        seen[f"{layer}.attention.q_rotated"] = q
        seen[f"{layer}.attention.k_rotated"] = k
        seen[f"{layer}.attention.head_output"] = heads
        seen[f"{layer}.attention.weights"] = weights
        per_head = own["Wo"].view(config.heads, config.head_size, config.hidden_size)
        x = x + torch.einsum("bhtd,hdc->btc", heads, per_head)
        seen[f"{layer}.residual1"] = x
        inner = F.relu(F.linear(norm(f"{layer}.norm2", x), parameters[f"{layer}.mlp.W_up"].T))
        x = x + F.linear(inner, parameters[f"{layer}.mlp.W_down"].T)
        seen[f"{layer}.output"] = x
    seen["logits"] = norm("final_norm", x) @ parameters["lm_head.weight"].T
    seen["probabilities"] = F.log_softmax(seen["logits"], dim=-1).exp()
    return seen


def gradients(target: Tensor, sources: Mapping[str, Tensor]) -> Tensors:
    """Return the gradient of a scalar at each source upstream of it."""
    found = torch.autograd.grad(
        target, tuple(sources.values()), retain_graph=True, allow_unused=True
    )
    return {name: value for name, value in zip(sources, found, strict=True) if value is not None}


def assert_close(what: str, actual: Tensor, expected: Tensor, tolerance: float) -> None:
    """Fail unless both agree to ``tolerance``, absolute or relative to the largest value."""
    scale = max(1.0, expected.abs().max().item())
    worst = (actual - expected).abs().max().item()
    assert worst <= tolerance * scale, f"{what}: differs by {worst:.3g}"


def check_gradients(
    config: Config,
    parameters: Mapping[str, Tensor],
    ids: Tensor,
    pairing: Pairing,
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
            moved = {
                key: value.detach() + nudge[key] if key in nudge else value.detach()
                for key, value in parameters.items()
            }
            trace = traced_forward(config, moved, ids, pairing, nudge)
            ends.append(trace[name_of_target][index])
        slope = (ends[0] - ends[1]) / (2 * step)
        assert_close(f"{pairing} d/d {name}", (gradient * direction).sum(), slope, 1e-7)


def make_reference(config: Config) -> Arrays:
    """Compute, verify and return every array of the reference file."""
    check_rotations(config)
    arrays: Arrays = {}
    settings = {"config": asdict(config), "parameter_seed": PARAMETER_SEED, "targets": TARGETS}
    arrays["settings"] = np.array(json.dumps(settings))
    ids = torch.tensor(IDS)
    arrays["ids"] = ids.numpy()
    drawn = make_parameters(config)
    for name, array in drawn.items():
        arrays[f"parameters/{name}"] = array
    parameters = {name: torch.from_numpy(array).requires_grad_() for name, array in drawn.items()}

    for pairing in PAIRINGS:
        trace = traced_forward(config, parameters, ids, pairing)
        fused = fused_forward(config, parameters, ids, pairing)
        for name, value in fused.items():
            assert_close(f"{pairing} {name}", trace[name], value, TOLERANCE)
        for name, value in trace.items():
            arrays[f"{pairing}/tensors/{name}"] = value.detach().numpy()
            if name.endswith(".up"):  # differences and other engines must not straddle the kink
                assert value.abs().min().item() > 1e-4, name

        sources = {**parameters, **{name: trace[name] for name in GRADIENT_ACTIVATIONS}}
        for label, target in TARGETS.items():
            name_of_target, index = target
            found = gradients(trace[name_of_target][index], sources)
            expected = gradients(fused[name_of_target][index], parameters)
            assert found.keys() & parameters.keys() <= expected.keys()
            for name, value in expected.items():  # the packed q, k, v know a Wv of no effect
                own = found.get(name, torch.zeros_like(value))
                assert_close(f"{pairing} {label} {name}", own, value, TOLERANCE)
            check_gradients(config, parameters, ids, pairing, target, found)
            if pairing not in STORED_GRADIENTS[label]:
                continue
            for name, value in found.items():
                arrays[f"{pairing}/gradients/{label}/{name}"] = value.numpy()

    single = {name: value.detach().float() for name, value in parameters.items()}
    logits = traced_forward(config, single, ids, "interleaved")["logits"]
    assert logits.dtype == torch.float32
    full = torch.from_numpy(arrays["interleaved/tensors/logits"])
    assert_close("float32 logits", logits.double(), full, 1e-5)
    arrays["float32/logits"] = logits.numpy()
    return arrays


def write_npz(path: Path, arrays: Arrays) -> None:
    """Write what ``np.savez_compressed`` would, with fixed dates and smaller headers."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, np.ascontiguousarray(array), allow_pickle=False)
            entry = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            archive.writestr(entry, buffer.getvalue(), zipfile.ZIP_DEFLATED, compresslevel=9)


def compare(path: Path, arrays: Arrays) -> None:
    """Fail unless the stored file has these arrays, in this order, to 1e-12."""
    with np.load(path, allow_pickle=False) as stored:
        assert list(stored) == list(arrays), "names differ"
        for name, array in arrays.items():
            if array.dtype.kind == "f":
                tolerance = 1e-6 if array.dtype == np.float32 else TOLERANCE
                np.testing.assert_allclose(stored[name], array, tolerance, tolerance, err_msg=name)
            else:
                np.testing.assert_array_equal(stored[name], array, err_msg=name)


def command(file: str) -> argparse.ArgumentParser:
    """The command line that every script here has: make its file, or compare with it."""
    parser = argparse.ArgumentParser(description=f"Make {file} with PyTorch.")
    parser.add_argument("--check", action="store_true", help="compare with the file, write nothing")
    default = Path(__file__).with_name(file)
    parser.add_argument("--output", type=Path, default=default, metavar="FILE")
    return parser


def deliver(options: argparse.Namespace, arrays: Arrays) -> None:
    """Write the arrays, or with ``--check`` compare them with the file."""
    if options.check:
        compare(options.output, arrays)
        print(f"{options.output}: {len(arrays)} arrays agree")
    else:
        write_npz(options.output, arrays)
        print(f"{options.output}: {len(arrays)} arrays, {options.output.stat().st_size} bytes")


def main() -> None:
    """Make the file, or with ``--check`` compare it with what would be made."""
    parser = command("random_model.npz")
    parser.add_argument("--hidden-size", type=int, default=Config.hidden_size, metavar="C")
    options = parser.parse_args()
    torch.set_num_threads(1)
    deliver(options, make_reference(Config(hidden_size=options.hidden_size)))


if __name__ == "__main__":
    main()
