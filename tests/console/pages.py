"""All pages of the panel by name, with an address that has data.

Add a line for each new page: tests check its accessibility and run its injected scripts, and screenshots include it.
"""

from __future__ import annotations

from tests.console.panel import Panel


def pages(panel: Panel) -> dict[str, str]:
    rows = panel.rows
    accounts = f"{panel.server.url}/admin/accounts"
    return {
        "dashboard": "",
        "dashboard-day": "?range=24h&user=lin.wei",
        "memories": "list/?user=lin.wei",
        "memories-all": "list/?tab=all",
        "memories-self": "list/?tab=self",
        "memories-found": "list/?tab=all&q=the+grippers",
        "memories-none": "list/?importance_min=0.99&agent=nobody",
        "full": "list/?tab=full&user=lin.wei",
        "memory": f"m/{rows['edited']}/",
        "memory-trashed": f"m/{rows['trashed']}/",
        "memory-superseded": f"m/{rows['superseded']}/",
        "memory-hostile": f"m/{rows['hostile_last']}/",
        "memory-edit": f"m/{rows['edited']}/edit/",
        "lab": "search/?q=PostgreSQL+region&user=lin.wei",
        "lab-hidden": "search/?q=deliveries+mondays&user=lin.wei",
        "lab-empty": "search/",
        "add-again": f"add/?like={rows['superseded']}",
        "add": "add/?user=lin.wei",
        "missing": "m/999999/",
        "find": "find/?q=1",
        "unknown-id": "find/?q=0f0e0d0c-0b0a-0908-0706-050403020100",
        "resources": "resources/",
        "resources-failed": "resources/?state=failed&type=pdf&q=pdf",
        "resource": f"resources/{rows['file_extracted']}/",
        "resource-failed": f"resources/{rows['file_failed']}/",
        "resource-hostile": f"resources/{rows['hostile_file']}/",
        "resource-trashed": f"resources/{rows['file_deleted']}/",
        "resource-delete": f"resources/{rows['file_extracted']}/delete/",
        "upload": "resources/upload/?user=lin.wei",
        "users": "users/",
        "users-none": "users/?q=nobody",
        "user": f"users/{rows['user']}/",
        "user-sessions": f"users/{rows['user']}/?view=sessions",
        "user-audit": f"users/{rows['user']}/?view=audit",
        "user-hostile": f"users/{rows['hostile_user']}/",
        "user-add": f"{accounts}/memoryuser/add/",
        "key-add": f"{accounts}/userkey/add/?user_id=lin.wei",
        "key-rotate": f"{accounts}/userkey/{rows['key']}/rotate/",
        "key-revoke": f"{accounts}/userkey/{rows['key']}/revoke/",
        "token-add": f"{accounts}/rpctoken/add/",
        "user-erase": f"users/{rows['user']}/erase/",
        "trash": "trash/",
        "trash-sessions": "trash/?kind=sessions",
        "trash-resources": "trash/?kind=resources",
        "trash-auto-hidden": "trash/?kind=aside",
        "trash-none": "trash/?user=lin.wei&kind=sessions",
        "jobs": "jobs/",
        "job": f"jobs/{rows['job']}/",
        "job-running": f"jobs/{rows['running']}/",
        "job-hostile": f"jobs/{rows['hostile_job']}/",
        "operators": "operators/",
        "operator": f"operators/{rows['operator']}/",
        "webhooks": "webhooks/",
        "webhook": f"webhooks/{rows['webhook']}/",
        "webhook-failed": f"webhooks/{rows['webhook']}/?state=failed",
        "webhook-hostile": f"webhooks/{rows['hostile_webhook']}/",
        "audit": "audit/",
        "audit-reads": "audit/?tab=read",
        "audit-filtered": "audit/?kind=operator&action=memory.&from=2026-01-01",
        "health": "health/",
    }
