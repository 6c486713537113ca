"""Delete from an environment what nothing reads, type checkers included: a quarter of the installed packages.

`python deploy/slim.py`, by the Python of a virtual environment. `make run` and the image do it after each installation.
"""

import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

LANGUAGES = frozenset({"en", "zh_Hans"})
"""Those of the panel, as folders of messages. Django comes with a hundred."""
UNUSED_FOLDERS = (
    "xberg.libs",  # copies of the libraries that are in `xberg`, where its code looks for them
    "drf_spectacular_sidecar/static/drf_spectacular_sidecar/redoc",  # the other page of API documentation
    "setuptools",  # Python 3.11 puts them into each environment
    "pkg_resources",
    "_distutils_hack",
)
UNUSED_FILES = ("distutils-precedence.pth",)
UNUSED_SUFFIXES = frozenset({".po", ".a"})
TESTED = ("numpy", "psycopg", "rest_framework", "uvicorn", "django_tasks", "pydantic")
"""Packages with tests inside, which may go. Elsewhere a folder `tests` may be code."""
WITH_DEBUGGING = ("uvloop", "yaml", "httptools", "cryptography", "pydantic_core")


def unused(packages: Path) -> Iterator[Path]:
    """Yield the files and folders of installed packages that are not needed."""
    yield from (packages / name for name in (*UNUSED_FOLDERS, *UNUSED_FILES))
    yield from packages.glob("setuptools-*.dist-info")
    for name in TESTED:
        yield from (packages / name).rglob("tests")
    yield from (path for path in packages.rglob("*") if path.suffix in UNUSED_SUFFIXES and path.is_file())
    yield from (packages / "pip").rglob("__pycache__")  # written again where pip is used again
    for messages in (packages / "django").rglob("locale/*/LC_MESSAGES"):
        if messages.parent.name not in LANGUAGES:
            yield messages


def slim(packages: Path) -> int:
    """Delete what is not needed; return the freed bytes."""
    freed = 0
    for path in list(unused(packages)):
        if path.is_dir():
            freed += sum(one.stat().st_size for one in path.rglob("*") if one.is_file())
            shutil.rmtree(path)
        elif path.is_file():
            freed += path.stat().st_size
            path.unlink()
    return freed


def strip(packages: Path) -> None:
    """Remove the debugging information of compiled modules, where the system has `strip`."""
    if program := shutil.which("strip"):
        modules = [str(path) for name in WITH_DEBUGGING for path in (packages / name).rglob("*.so")]
        subprocess.run([program, "--strip-debug", *modules], check=bool(modules))  # noqa: S603  paths of installed packages


def main() -> int:
    if sys.prefix == sys.base_prefix:
        sys.stderr.write("slim: this is no virtual environment. Run it by the Python of one.\n")
        return 2
    packages = Path(sysconfig.get_path("purelib"))
    if freed := slim(packages):
        strip(packages)
        sys.stdout.write(f"Deleted {freed / 2**20:.0f} MB that the gateway does not read.\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
