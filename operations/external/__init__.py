"""Calls to an external engine that it has not accepted yet: unconfirmed ones are retried, deletions repeated."""
