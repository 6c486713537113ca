from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from accounts.audit import Actor
from accounts.services import find_user
from core.errors import InvalidInput
from operations.archives.encryption import read_key
from operations.archives.export import export
from operations.archives.markdown_export import export_markdown
from operations.commands import Answer, OperationsCommand, add_key_file


class Command(OperationsCommand):
    help = (
        "Export users to an archive: sessions, memories, files, decisions, profiles and audit trail. "
        "The gateway can keep running. Exit code 1 if files are missing."
    )
    requires_storage = False  # it only reads, and names the files that are missing

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("archive", type=Path, help="file to write, such as memories.tar; must not exist")
        add_key_file(parser)
        parser.add_argument(
            "--markdown",
            action="store_true",
            help="write the memories alone, as a folder of Markdown, one file per day",
        )
        users = parser.add_mutually_exclusive_group(required=True)
        users.add_argument("--user", action="append", metavar="USER_ID", help="export this user; repeatable")
        users.add_argument("--all", action="store_true", help="export all users")
        parser.add_argument(
            "--with-keys", action="store_true", help="include API keys as digests; they keep working after the import"
        )

    def run(
        self,
        *,
        archive: Path,
        user: list[str] | None,
        with_keys: bool,
        markdown: bool,
        key_file: Path | None,
        **options: Any,
    ) -> Answer:
        key = read_key(key_file) if key_file else None
        pks = None if user is None else [find_user(user_id).pk for user_id in user]
        if markdown and key:
            raise InvalidInput("--key-file encrypts archives. Leave out --markdown, which writes a folder.")
        if markdown:
            counts = export_markdown(pks, archive, actor=Actor.command("export_memory"), report=self.report)
            total = sum(counts.values())
            data = {"folder": str(archive), "users": len(counts), "memories": total}
            return Answer(data, f"{archive}: {len(counts):,} users, {total:,} memories.")
        done = export(
            pks,
            archive,
            with_keys=with_keys,
            key=key,
            actor=Actor.command("export_memory"),
            report=self.report,
        )
        data = {"archive": str(archive), "users": len(done.users), "rows": dict(done.rows), "files": done.files}
        text = f"{archive}: {len(done.users):,} users, {done.rows.get('memories', 0):,} memories, {done.files:,} files."
        if done.missing:
            text += f" Missing from the storage folder: {', '.join(done.missing[:20])}."
        return Answer({**data, "missing": list(done.missing)}, text, is_ok=not done.missing)
