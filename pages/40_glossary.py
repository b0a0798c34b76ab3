"""Glossary: the terms of all lessons in both languages."""

from ui import glossary

glossary.show()
