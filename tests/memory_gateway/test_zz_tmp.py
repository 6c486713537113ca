import os, signal
from tests.memory_gateway.test_bounds import *
from tests.memory_gateway.test_bounds import _many_files
import pytest
@pytest.mark.parametrize("args", [(), ("--workers","2")])
def test_term(tmp_path, args):
    with running_server(tmp_path, *args, **ON_A_NETWORK) as server:
        socks=[connect(server) for _ in range(5)]
        s=connect(server); s.sendall(b"GET / HT"); socks.append(s)
        s=connect(server); s.sendall(head(path=b"/health")); s.recv(1000); socks.append(s)
        with connected(server, RPC_TOKEN) as c:
            t=time.monotonic()
            if args:
                server.process.terminate()
                server.wait(30)
            else: print(server.stop())
            print(args, time.monotonic()-t, server.log[-600:])
            print(c.receive())
