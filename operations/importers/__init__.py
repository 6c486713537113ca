"""Imports of memories from other products: plan, run, undo."""
