"""Moves of memories between engines, including deletions and overrides."""
