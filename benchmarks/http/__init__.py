"""The same search through the gateway and through a FastAPI service of the shape that the first design had."""
