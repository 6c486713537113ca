"""`manage.py export_memory`: one archive of everything that is a user's, or all users'."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from accounts.audit import Actor
from accounts.services import find_user
from operations.commands import Answer, LifecycleCommand
from operations.export import export


class Command(LifecycleCommand):
    help = (
        "Write one archive with everything of some users: sessions, memories, files, decisions, profiles, trail. "
        "The gateway may run meanwhile. Exit code 1 if files were missing."
    )

    requires_storage = False  # it only reads, and names the files that are missing

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("archive", type=Path, help="the file to write, such as memories.tar; it must not exist yet")
        whose = parser.add_mutually_exclusive_group(required=True)
        whose.add_argument("--user", action="append", metavar="USER_ID", help="this user; may be given several times")
        whose.add_argument("--all", action="store_true", help="all users")
        parser.add_argument(
            "--with-keys", action="store_true", help="user keys too, as digests: they go on working after the import"
        )

    def run(self, *, archive: Path, user: list[str] | None, with_keys: bool, **options: Any) -> Answer:
        pks = None if user is None else [find_user(user_id).pk for user_id in user]
        done = export(
            pks,
            archive,
            with_keys=with_keys,
            actor=Actor.command("export_memory"),
            report=self.report,
            stop=self.stop,
        )
        data = {"archive": str(archive), "users": len(done.users), "rows": dict(done.rows), "files": done.files}
        text = f"{archive}: {len(done.users):,} users, {done.rows.get('memories', 0):,} memories, {done.files:,} files."
        if done.missing:
            text += f" Missing in the storage: {', '.join(done.missing[:20])}."
        return Answer({**data, "missing": list(done.missing)}, text, is_ok=not done.missing)
