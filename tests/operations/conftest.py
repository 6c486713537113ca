from tests.resources.conftest import quiet_pool

__all__ = ["quiet_pool"]
