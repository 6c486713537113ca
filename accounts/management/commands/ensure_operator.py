import contextlib
import ipaddress
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import IntegrityError, transaction

from accounts.audit import Actor, record
from accounts.operators import random_password
from core.messages import MANAGE

# The second name is for databases in which a user who is no superuser has the first.
_NAMES = ("admin", "gateway-admin")


class Command(BaseCommand):
    help = "Create an operator with a random password, printed once, unless an active superuser exists."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--host", default=settings.MEMORY_GATEWAY_HOST, help="host of the printed address (default: %(default)s)"
        )
        parser.add_argument(
            "--port",
            type=int,
            default=settings.MEMORY_GATEWAY_PORT,
            help="port of the printed address (default: %(default)s)",
        )

    def handle(self, *args: Any, host: str, port: int, **options: Any) -> None:
        try:
            created = ensure_operator(actor=Actor.command("ensure_operator"))
        except RuntimeError as error:
            raise CommandError(str(error)) from None
        if created is None:
            return
        username, password = created
        self.stdout.write(
            "\n"
            "  Created an operator. The password is shown only once.\n"
            "\n"
            f"    sign in   {_sign_in_url(host, port)}\n"
            f"    user      {username}\n"
            f"    password  {password}\n"
        )


def _sign_in_url(host: str, port: int) -> str:
    if settings.IS_PRODUCTION:
        return f"https://{settings.ALLOWED_HOSTS[0].removeprefix('.')}/admin/"
    with contextlib.suppress(ValueError):
        host = "127.0.0.1" if ipaddress.ip_address(host).is_unspecified else host
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/admin/"


def ensure_operator(*, actor: Actor) -> tuple[str, str] | None:
    """Create a superuser and return the name and a random password of 144 bits; None if an active superuser exists.

    Concurrent calls create one superuser: names are unique, and the call that comes second finds the first one's.

    Raises: `RuntimeError` if both names belong to users who are no active superusers.
    """
    for username in _NAMES:
        if User.objects.filter(is_superuser=True, is_active=True).exists():
            return None
        password = random_password()
        try:
            with transaction.atomic():
                User.objects.create_superuser(username, password=password)
                record(actor, "operator.create", username)
        except IntegrityError:
            continue
        return username, password
    if User.objects.filter(is_superuser=True, is_active=True).exists():
        return None
    raise RuntimeError(f"The user names admin and gateway-admin are taken. Run `{MANAGE} createsuperuser`.")
