"""Lesson 30: Loss."""

from ui import lesson

lesson.show("loss")
