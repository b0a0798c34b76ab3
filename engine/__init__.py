"""A GPT's forward pass in which every number can say where it came from."""

from engine import presets, programs
from engine.config import ModelConfig
from engine.edits import Carried, Edit, Mean
from engine.errors import ConfigError, EditError, GlassboxError, InputError
from engine.explain import Cell, Term, explain
from engine.gradient import gradient
from engine.model import Model
from engine.recording import Tensor, TensorMap
from engine.tokenizer import WordTokenizer
from engine.trace import Trace, read_ids, run

__all__ = [
    "Carried", "Cell", "ConfigError", "Edit", "EditError", "GlassboxError", "InputError", "Mean", "Model",
    "ModelConfig", "Tensor", "TensorMap", "Term", "Trace", "WordTokenizer", "explain", "gradient", "presets",
    "programs", "read_ids", "run",
]
