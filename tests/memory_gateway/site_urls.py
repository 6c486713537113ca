from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator

from django.http import HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from memory_gateway import urls
from memory_gateway.urls import handler400, handler403, handler404, handler500

__all__ = ["handler400", "handler403", "handler404", "handler500", "urlpatterns"]


def sleep(request: HttpRequest, seconds: str) -> HttpResponse:
    time.sleep(float(seconds))
    return JsonResponse({"slept": seconds, "pid": os.getpid()})


def headers(request: HttpRequest) -> HttpResponse:
    return JsonResponse({"body": len(request.body), **request.headers})


def large(request: HttpRequest, size: int) -> HttpResponse:
    return HttpResponse(bytes(size), content_type="application/octet-stream")


def hang(request: HttpRequest) -> HttpResponse:
    """Leaves a thread behind that Python would wait for at its end."""
    threading.Thread(target=time.sleep, args=(60,), daemon=False).start()
    return JsonResponse({})


def fail(request: HttpRequest) -> HttpResponse:
    raise RuntimeError("it broke with uk_secretsecretsecret")


@csrf_exempt
def body(request: HttpRequest) -> HttpResponse:
    return JsonResponse({"size": len(request.body)})


def stream(request: HttpRequest) -> StreamingHttpResponse:
    return StreamingHttpResponse(_parts(), content_type="text/plain")


def _parts() -> Iterator[bytes]:
    yield from (b"one ", b"two ", b"three")


class Echo(APIView):
    """Answers what it was sent, as any endpoint of ours would read it."""

    authentication_classes = []
    permission_classes = [AllowAny]

    def post(self, request: Request) -> Response:
        return Response({"you_sent": request.data})


urlpatterns = [
    path("test/sleep/<str:seconds>", sleep),
    path("test/headers", csrf_exempt(headers)),
    path("test/large/<int:size>", large),
    path("test/hang", hang),
    path("test/fail", fail),
    path("admin/test/fail", fail),
    path("test/body", body),
    path("test/stream", stream),
    path("test/echo", Echo.as_view()),
    *urls.urlpatterns,
]
