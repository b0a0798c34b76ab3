"""What can go wrong, as data: a code and the facts, so that any language can put it into words."""

from __future__ import annotations


class GlassboxError(ValueError):
    """A request that cannot be carried out; `code` says which kind, `details` holds the facts."""

    def __init__(self, code: str, message: str, **details: object) -> None:
        super().__init__(message)
        self.code = code
        self.details = details


class ConfigError(GlassboxError):
    """A configuration, or a set of parameters, that no model can have."""


class InputError(GlassboxError):
    """A sentence that the model cannot read."""


class EditError(GlassboxError):
    """An edit of something that does not exist, or to a value that is not allowed."""
