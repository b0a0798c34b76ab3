"""Make ``trained_models.npz``: what PyTorch computes with the committed weights of the trained presets.

As in ``make_reference.py``, whose two forwards it uses: the tests only read the arrays, and nothing
here imports the engine or the script that trained the models. Both forwards must agree before anything
is written. See ``README.md`` for the layout of the file.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch
from make_reference import (
    TOLERANCE,
    Arrays,
    Config,
    Tensors,
    assert_close,
    command,
    deliver,
    fused_forward,
    traced_forward,
)

PRESETS = Path(__file__).parent.parent.parent / "assets" / "presets"
NAMES = ("copy_machine", "little_world")
ID_SEED = 20250110
ROWS, LENGTH = 1, 32
FIELDS = tuple(Config.__dataclass_fields__)
STORED = ("layers.0.attention.weights", "layers.1.attention.weights", "layers.1.output", "logits")


def read(name: str) -> tuple[Config, Tensors]:
    """Return the shape and the parameters of a safetensors file: length of the header, header, numbers."""
    contents = (PRESETS / f"{name}.safetensors").read_bytes()
    start = 8 + int.from_bytes(contents[:8], "little")
    header = json.loads(contents[8:start])
    settings = json.loads(header.pop("__metadata__")["config"])
    parameters = {}
    for parameter, entry in header.items():
        first, last = entry["data_offsets"]
        numbers = np.frombuffer(contents[start + first:start + last], dtype="<f8").reshape(entry["shape"])
        parameters[parameter] = torch.from_numpy(numbers.copy())
    return Config(**{field: settings[field] for field in FIELDS}), parameters


def make_reference() -> Arrays:
    """Compute, verify and return every array of the file."""
    arrays: Arrays = {}
    generator = np.random.default_rng(ID_SEED)
    for name in NAMES:
        config, parameters = read(name)
        ids = torch.from_numpy(generator.integers(config.vocab_size, size=(ROWS, LENGTH)))
        trace = traced_forward(config, parameters, ids, "interleaved")
        for tensor, value in fused_forward(config, parameters, ids, "interleaved").items():
            assert_close(f"{name} {tensor}", trace[tensor], value, TOLERANCE)
        arrays[f"{name}/ids"] = ids.numpy()
        for tensor in STORED:
            arrays[f"{name}/tensors/{tensor}"] = trace[tensor].numpy()
    return arrays


def main() -> None:
    """Make the file, or with ``--check`` compare it with what would be made."""
    options = command("trained_models.npz").parse_args()
    torch.set_num_threads(1)
    deliver(options, make_reference())


if __name__ == "__main__":
    main()
