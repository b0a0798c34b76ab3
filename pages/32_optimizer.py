"""Lesson 32: Optimizer step."""

from ui import lesson

lesson.show("optimizer")
