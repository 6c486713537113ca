"""A web server on loopback that answers byte for byte what a test tells it to, and remembers what it was asked."""

from __future__ import annotations

import contextlib
import datetime
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

Answer = Callable[[socket.socket], None]


def page(body: bytes, status: str = "200 OK", *, length: int | None = None, **headers: str) -> Answer:
    """A whole answer; `length` is what it says of itself, `content_type="…"` a header."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body) if length is None else length}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return raw("\r\n".join(lines).encode() + b"\r\n\r\n" + body)


def raw(data: bytes) -> Answer:
    return lambda connection: connection.sendall(data)


def dripping(head: bytes, drop: bytes = b"x", every_seconds: float = 0.05) -> Answer:
    """Sends the head, then a drop now and then, for as long as anybody listens."""

    def drip(connection: socket.socket) -> None:
        connection.sendall(head)
        while True:
            connection.sendall(drop)
            time.sleep(every_seconds)

    return drip


@dataclass
class WebServer:
    """`pages` by path; any other is 404. `heads` are the requests in order, line and headers; `names` what TLS clients
    asked for."""

    port: int
    pages: dict[str, Answer] = field(default_factory=dict)
    heads: list[str] = field(default_factory=list)
    names: list[str | None] = field(default_factory=list)

    def url(self, path: str, host: str = "127.0.0.1", scheme: str = "http") -> str:
        return f"{scheme}://{host}:{self.port}{path}"

    def answer(self, connection: socket.socket) -> None:
        head = b""
        while b"\r\n\r\n" not in head and (piece := connection.recv(65_536)):
            head += piece
        if not head:
            return
        self.heads.append(head.decode())
        path = head.split(b" ", 2)[1].partition(b"?")[0].decode()
        self.pages.get(path, page(b"gone", "404 Not Found"))(connection)


@contextlib.contextmanager
def web_server(tls: ssl.SSLContext | None = None) -> Iterator[WebServer]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = WebServer(listener.getsockname()[1])
        if tls is not None:
            tls.sni_callback = lambda _sock, name, _context: server.names.append(name)
        accepting = threading.Thread(target=_accept, args=(listener, server, tls), daemon=True)
        accepting.start()
        yield server
        listener.shutdown(socket.SHUT_RDWR)
        accepting.join()


def _accept(listener: socket.socket, server: WebServer, tls: ssl.SSLContext | None) -> None:
    with contextlib.suppress(OSError):
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=_serve, args=(connection, server, tls), daemon=True).start()


def _serve(connection: socket.socket, server: WebServer, tls: ssl.SSLContext | None) -> None:
    secured = tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False) if tls else connection
    with contextlib.suppress(OSError), secured:
        server.answer(secured)


def tls_contexts(folder: Path, *names: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return a TLS context for a server of these names and one for a client that trusts only its certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(one) for one in names]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    plain = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    chain = folder / "chain.pem"
    chain.write_bytes(key.private_bytes(*plain) + pem)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(chain)
    return server, ssl.create_default_context(cadata=pem.decode())
