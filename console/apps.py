from django.apps import AppConfig

from console import labels


class ConsoleConfig(AppConfig):
    name = "console"

    def ready(self) -> None:
        labels.translate()
