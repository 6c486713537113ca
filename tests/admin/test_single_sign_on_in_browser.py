"""An operator signs in and out by OpenID Connect in Chromium, under the panel's content security policy."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import forked, stub_oidc
from tests.browser import chromium, open_page
from tests.console import axe
from tests.server import running_server
from tests.stub_oidc import CLIENT_ID, CLIENT_SECRET

pytestmark = pytest.mark.browser


@pytest.mark.slow
def test_sign_in_and_sign_out(tmp_path: Path) -> None:
    with stub_oidc.running() as provider:
        provider.person["groups"] = ["support"]
        configured = {
            "MEMORY_GATEWAY_OIDC_ISSUER": provider.issuer,
            "MEMORY_GATEWAY_OIDC_CLIENT_ID": CLIENT_ID,
            "MEMORY_GATEWAY_OIDC_CLIENT_SECRET": CLIENT_SECRET,
            "MEMORY_GATEWAY_OIDC_ROLES": "admins=Administrator,support=Viewer",
            "MEMORY_GATEWAY_PASSWORD_SIGN_IN": "false",
        }
        with running_server(tmp_path, **configured) as server, chromium() as browser, open_page(browser) as opened:
            page, observed = opened
            page.goto(f"{server.url}/admin/memory/users/?q=a")
            assert page.locator("#id_password").count() == 0
            assert axe.violations(page) == []
            page.click("text=Sign in with single sign-on")
            page.wait_for_url(f"{server.url}/admin/memory/users/?q=a")
            page.click(".mg-account summary")
            assert page.locator("text=Change password").count() == 0
            page.click("text=Sign out")
            assert page.inner_text("h1") == "You are signed out"
            assert axe.violations(page) == []
            page.click("text=Sign out there too")
            page.wait_for_url(f"{provider.issuer}/leave?**")
            page.goto(f"{server.url}/admin/memory/")
            assert page.inner_text("h1") == "Sign in to the memory panel"
            assert observed.errors == []
            wrong = {**server.env, "MEMORY_GATEWAY_OIDC_ROLES": "support=viewer"}
            refused = forked.run(["manage.py", "serve", "--port", "0"], wrong)
        assert refused.returncode != 0
        assert "names the role 'viewer', which does not exist" in refused.stderr
        assert refused.stderr.count("\n") == 1
