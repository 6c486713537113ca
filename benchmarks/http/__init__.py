"""Compare a search through the gateway with the same search through a FastAPI service as first designed."""
