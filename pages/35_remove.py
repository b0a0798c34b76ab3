"""Lesson 35: Remove a part."""

from ui import lesson

lesson.show("remove")
