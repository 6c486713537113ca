from __future__ import annotations

import contextlib
import ipaddress
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from accounts.audit import Actor
from accounts.operators import ensure_operator


class Command(BaseCommand):
    help = "Create an operator with a random password, printed once, unless an active superuser exists."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            made = ensure_operator(actor=Actor.command("ensure_operator"))
        except RuntimeError as error:
            raise CommandError(str(error)) from None
        if made is None:
            return
        self.stdout.write(
            "\n"
            "  Memory Gateway made its first operator. The password is shown this once.\n"
            "\n"
            f"    sign in   {_sign_in_url()}\n"
            f"    user      {made.username}\n"
            f"    password  {made.password}\n"
        )


def _sign_in_url() -> str:
    if settings.IS_PRODUCTION:
        return f"https://{settings.ALLOWED_HOSTS[0].removeprefix('.')}/admin/"
    host = settings.MEMORY_GATEWAY_HOST
    with contextlib.suppress(ValueError):
        host = "127.0.0.1" if ipaddress.ip_address(host).is_unspecified else host
    return f"http://{f'[{host}]' if ':' in host else host}:{settings.MEMORY_GATEWAY_PORT}/admin/"
