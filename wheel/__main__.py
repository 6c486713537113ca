"""`memory-gateway` prepares and starts the gateway; `memory-gateway COMMAND` runs one of its commands.

`memory-gateway manage COMMAND` also runs those of Django.

Settings file, database and files are in `MEMORY_GATEWAY_HOME`, by default `memory-gateway` in the user's data folder.
"""

import os
import sys
from pathlib import Path


def main() -> int:
    """Run the command line and return the exit code."""
    data_folder = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    os.environ.setdefault("MEMORY_GATEWAY_HOME", str(Path(data_folder, "memory-gateway").expanduser()))
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # requests already run in threads
    os.environ["DJANGO_SETTINGS_MODULE"] = "memory_gateway.settings"  # the shell may have that of another project
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    from memory_gateway import commandline, overview  # noqa: PLC0415 - found on the path set above

    match sys.argv[1:]:
        case ["manage", *arguments]:
            return commandline.main(["memory-gateway manage", *arguments])
        case [word] if word in overview.HELP:
            return commandline.print_overview()
        case [word] if word in overview.GROUPS.keys() - {*overview.COMMANDS}:
            return commandline.print_overview(word)
        case [word, *_] if word in overview.COMMANDS:
            return commandline.main(["memory-gateway", *sys.argv[1:]])
        case [word, *_] if not word.startswith("-"):
            return commandline.refuse(word)
        case arguments:
            return commandline.main(["memory-gateway", "start", *arguments])


if __name__ == "__main__":
    sys.exit(main())
