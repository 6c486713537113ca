"""Measurements of a running gateway: `python -m benchmarks` lists them."""
