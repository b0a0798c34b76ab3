"""Lesson 37: Logit lens."""

from ui import lesson

lesson.show("lens")
