from tests.resources.conftest import quiet_tasks

__all__ = ["quiet_tasks"]
