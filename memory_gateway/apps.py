from django.apps import AppConfig
from django.http import FileResponse


class MemoryGatewayConfig(AppConfig):
    name = "memory_gateway"

    def ready(self) -> None:
        # Each block of a download is handed from a thread to the event loop: with Django's 4 KiB, 100 MiB take 2 s.
        FileResponse.block_size = 256 * 1024
