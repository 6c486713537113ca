"""The commands of the product by purpose, as `memory-gateway --help` lists them, without those of Django."""

from collections.abc import Iterable
from difflib import get_close_matches
from textwrap import fill
from typing import Final

import django
from django.core.management import get_commands, load_command_class

GROUPS: Final[dict[str, tuple[str, ...]]] = {
    "serve": ("start", "serve", "worker", "mcp", "migrate"),
    "users": ("create_user", "erase_user", "ensure_operator", "demo_data"),
    "keys": ("rotate_key", "revoke_key", "issue_token", "revoke_token", "rotate_secret"),
    "memories": ("ingest", "purge_trash", "rebuild", "reembed", "reingest", "backfill"),
    "import": ("import_from", "import_gateway", "migrate_openclaw", "import_memory"),
    "export": ("export_memory", "audit_export"),
    "check": ("doctor", "evaluate", "verify_receipt"),
    "move": ("backup", "restore", "adopt_storage"),
}
COMMANDS: Final = tuple(name for names in GROUPS.values() for name in names)
HELP: Final = ("help", "-h", "--help")
_USAGE: Final = """usage: memory-gateway [COMMAND] [OPTIONS]

Memory Gateway, a self-hosted memory service for AI agents. Without a command it starts the server: `start`.
`memory-gateway COMMAND --help` lists the options of a command.
"""


def overview(groups: Iterable[str] = GROUPS) -> str:
    """Return the commands of some groups, each with the first sentence about it."""
    django.setup()
    apps, width = get_commands(), max(map(len, COMMANDS))
    lines = [_USAGE]
    for group in groups:
        lines.append(f"{group}:")
        for name in GROUPS[group]:
            sentence = str(load_command_class(apps[name], name).help).partition(". ")[0].rstrip(".")
            lines.append(
                fill(f"{sentence}.", 120, initial_indent=f"  {name:{width}}  ", subsequent_indent=" " * (width + 4))
            )
        lines.append("")
    return "\n".join(lines)


def unknown(word: str) -> str:
    """Return the sentence for a word that is no command."""
    near = get_close_matches(word, (*COMMANDS, *GROUPS), n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    return f"There is no command {word}.{hint} `memory-gateway --help` lists all."
