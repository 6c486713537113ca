"""Measure retrieval quality over REST."""
