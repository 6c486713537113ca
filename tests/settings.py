"""The project's settings with a data folder of the test run's own; a developer's `.env` and environment stay out."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

# For `test_backend_integration`, whose documented call names it so.
os.environ.setdefault("DEPLOYED_BACKEND_BASE_URL", os.environ.get("MEMORY_GATEWAY_BACKEND_BASE_URL", ""))
for _name in [name for name in os.environ if name.startswith("MEMORY_GATEWAY_")]:
    del os.environ[_name]
# One folder for all processes of a run: the first one, which starts the others, removes it.
RUN_FOLDER = "TESTS_FOLDER"
if RUN_FOLDER not in os.environ:
    os.environ[RUN_FOLDER] = tempfile.mkdtemp(prefix="memory-gateway-tests-")
    atexit.register(shutil.rmtree, os.environ[RUN_FOLDER], ignore_errors=True)
_DATA = Path(tempfile.mkdtemp(dir=os.environ[RUN_FOLDER]))
os.environ["MEMORY_GATEWAY_ENV_FILE"] = ""
os.environ["MEMORY_GATEWAY_DB_PATH"] = str(_DATA / "memory_gateway.sqlite3")
os.environ["MEMORY_GATEWAY_STORAGE_DIR"] = str(_DATA / "storage")
os.environ["MEMORY_GATEWAY_OCR"] = "off"  # tests of recognition turn it on
os.environ["MEMORY_GATEWAY_MIN_FREE_DISK_BYTES"] = "0"

from memory_gateway.settings import *  # noqa: E402, F403

ALLOWED_HOSTS = ["testserver", "127.0.0.1", "localhost"]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):  # noqa: F405
    # A real file: in memory, threads would share one cache and meet locks that no user ever sees.
    DATABASES["default"]["TEST"] = {"NAME": str(_DATA / "tests.sqlite3")}  # noqa: F405
else:
    # No test ends PostgreSQL itself, so that no commit has to wait for the disk.
    DATABASES["default"].setdefault("OPTIONS", {})["options"] = "-c synchronous_commit=off"  # noqa: F405
WHITENOISE_AUTOREFRESH = True  # every test client would read all static files first
MEMORY_GATEWAY_BACKEND_RETRY_DELAY_SECONDS = 0.01
# Buckets of files that tests register by `minio://` and `s3://`.
MEMORY_GATEWAY_EXTERNAL_BUCKETS = ["beaver-user-files", "bucket", "documents"]
# All test clients call from one address.
FAILED_AUTHENTICATIONS_PER_MINUTE = 0
ANONYMOUS_REQUESTS_PER_MINUTE = 0
CLIENT_REGISTRATIONS_PER_MINUTE = 0
