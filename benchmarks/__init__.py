"""Figures for speed, each beside what it is to be compared with; run `python -m benchmarks`."""
