#!/usr/bin/env python3
import os
import sys

try:
    from memory_gateway import commandline
except ModuleNotFoundError as error:
    sys.exit(
        f"memory-gateway: The Python package {error.name} is not installed. Run `make run` once to install everything, "
        "then use `.venv/bin/python manage.py`."
    )

if __name__ == "__main__":
    # Threads of requests are threads enough: numpy's own would fight them for the processors.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memory_gateway.settings")
    sys.exit(commandline.main(sys.argv))
