"""Lesson 28: The whole system."""

from ui import lesson

lesson.show("system")
