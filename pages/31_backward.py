"""Lesson 31: Backward."""

from ui import lesson

lesson.show("backward")
