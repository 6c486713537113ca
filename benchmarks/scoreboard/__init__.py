"""Compare the gateway with peers that need no model, on the same inputs in one run."""
