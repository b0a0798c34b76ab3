"""Lesson 39: What would raise this logit?."""

from ui import lesson

lesson.show("raise_logit")
