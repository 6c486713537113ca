"""The documentation agrees with the code: examples print what they show, names exist, and links lead somewhere.

`make docs` checks the links between the pages of `docs/` itself.
"""

from __future__ import annotations

import ast
import importlib
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.apps import apps
from django.core.management import get_commands, load_command_class
from django.urls import Resolver404, resolve

from benchmarks import plot
from console import urls as console_urls
from core.background.tasks import LOCAL, PERIODIC, repeated
from core.errors import GatewayError
from memory_gateway.server import responses, wsgi_bridge  # noqa: F401  their errors are documented too
from memory_gateway.settings import env
from tests.forked import PROJECT
from tests.memory_gateway.routes import all_routes
from tests.server import running_server

ADDRESS = "http://127.0.0.1:8010"
DOCS = PROJECT / "docs"
README, CHINESE_README = PROJECT / "README.md", PROJECT / "README.zh-CN.md"
OUTSIDE = [README, CHINESE_README, PROJECT / "CONTRIBUTING.md", PROJECT / "SECURITY.md", PROJECT / "CHANGELOG.md"]
PAGES = [*OUTSIDE, *sorted(DOCS.rglob("*.md"))]
# Written by `write_api_reference`; `tests/skill` compares it with the OpenAPI document.
REFERENCE = PROJECT / "skill" / "memory-gateway-agent" / "references" / "api.md"
MAX_WORDS = 13_000

name_of = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def rows(page: Path) -> list[str]:
    """The first code span of each table row."""
    return re.findall(r"^\| `([^`]+)`", text_of(page), re.MULTILINE)


# --- examples --------------------------------------------------------------------------------------------------------

# What differs from run to run: keys and resource ids.
RANDOM = re.compile(r"uk_[A-Za-z0-9_-]{43}|r_[0-9a-f]{32}")
NEW_KEY = f"""KEY=$(curl -s {ADDRESS}/users --json '{{"user_id": "u_1"}}' | sed -E 's/.*"user_key":"([^"]+)".*/\\1/')"""


def console(page: Path) -> list[tuple[str, str]]:
    """The commands of the console blocks, each with the output below it."""
    blocks = re.findall(r"^```console\n(.*?)^```", text_of(page), re.DOTALL | re.MULTILINE)
    shown = [part for block in blocks for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]
    return [(command, output.strip()) for command, _, output in (part.partition("\n") for part in shown)]


def pattern(output: str) -> str:
    """A regular expression for an output in which `…` stands for what is left out."""
    return ".*".join(re.escape(RANDOM.sub("…", part)) for part in RANDOM.sub("…", output).split("…"))


@pytest.mark.parametrize(
    ("page", "setup"),
    [(README, ""), (CHINESE_README, ""), (DOCS / "use" / "api.md", ""), (DOCS / "use" / "mcp.md", NEW_KEY)],
    ids=lambda value: value.name if isinstance(value, Path) else "",
)
def test_the_examples_print_what_the_page_shows(page: Path, setup: str, tmp_path: Path) -> None:
    for tool in ("bash", "curl"):
        if not shutil.which(tool):
            pytest.skip(f"{tool} is not installed")
    examples = console(page)
    assert examples
    (tmp_path / "docs").symlink_to(DOCS)
    with running_server(tmp_path / "data") as server:
        # A mark after each command's output tells them apart; all run in one shell, as a reader's would.
        script = "\n".join([setup, *(f"{command}\nprintf '\\n--end--\\n'" for command, _ in examples)])
        run = subprocess.run(
            ["bash"],
            input=script.replace(ADDRESS, server.url),
            cwd=tmp_path,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
    printed = run.stdout.split("\n--end--\n")[:-1]
    assert len(printed) == len(examples)
    for (command, shown), output in zip(examples, printed, strict=True):
        assert re.fullmatch(pattern(shown), output.strip(), re.DOTALL), f"{command}\n{output}"


@pytest.mark.parametrize("readme", [README, CHINESE_README], ids=lambda page: page.name)
def test_the_first_screen_of_a_readme_holds_picture_commands_and_main_job(readme: Path) -> None:
    text = text_of(readme)
    assert text.index("![") < text.index("make run") < text.index("make test") < text.index("```console")
    assert text[: text.index("```console")].count("\n") < 20
    assert len(console(readme)) == 7
    assert text.count("\n") < 120


def test_the_chinese_readme_has_the_same_links() -> None:
    english, chinese = (set(re.findall(r"\]\((docs/[^)]+\.md)\)", text_of(page))) for page in (README, CHINESE_README))
    assert chinese - english == {"docs/zh/index.md"}
    assert english - chinese == set()


# --- settings, commands, endpoints, error codes ----------------------------------------------------------------------

# The client's own, and what `serve` sets for its workers.
CLIENT = {"MEMORY_GATEWAY_BASE_URL", "MEMORY_GATEWAY_USER_ID", "MEMORY_GATEWAY_USER_KEY"}
INTERNAL = {"MEMORY_GATEWAY_NO_WORKER", "MEMORY_GATEWAY_WORKER"}
SETTINGS = (env.names | {"DATABASE_URL"}) - CLIENT - INTERNAL


def test_every_setting_is_documented_once() -> None:
    assert Counter(rows(DOCS / "operate" / "settings.md")) == Counter(SETTINGS)


def test_the_documented_defaults_are_those_of_the_example() -> None:
    page, example = text_of(DOCS / "operate" / "settings.md"), text_of(PROJECT / ".env.example")
    documented = dict(re.findall(r"^\| `([A-Z_]+)` \| (?:`([^`]*)`)? *\|", page, re.MULTILINE))
    defaults = dict(re.findall(r"^([A-Z_]+)=(.*)$", example, re.MULTILINE))
    assert {name: documented[name] for name in defaults} == defaults


@name_of
def test_every_setting_that_a_page_names_exists(page: Path) -> None:
    assert set(re.findall(r"\bMEMORY_GATEWAY_[A-Z_]*[A-Z]\b", text_of(page))) <= SETTINGS | CLIENT


def own_commands() -> set[str]:
    ours = {config.name for config in apps.get_app_configs() if Path(config.path).parent == PROJECT}
    return {name for name, app in get_commands().items() if app in ours}


def test_every_command_is_documented_once_with_options_that_it_has() -> None:
    documented = rows(DOCS / "operate" / "commands.md")
    names = [row.split()[1] for row in documented if row.startswith("manage.py ")]
    assert Counter(names) == Counter(own_commands())
    for row in documented:
        if row.startswith("manage.py "):
            name = row.split()[1]
            parser = load_command_class(get_commands()[name], name).create_parser("manage.py", name)
            assert set(re.findall(r"--[a-z-]+", row)) <= set(parser._option_string_actions), row


# What no page of the panel is: changes that pages send, and signing in.
NO_PAGES = {"demo", "language", "sign-in", "sign-out", "undo"}


def test_every_part_of_the_panel_is_documented() -> None:
    documented = set(re.findall(r"`([a-z-]+)/", text_of(DOCS / "operate" / "panel.md")))
    parts = {str(url.pattern).partition("/")[0] for url in console_urls.urlpatterns} - {""}
    assert parts - NO_PAGES == documented & parts


def test_every_task_that_workers_repeat_is_documented() -> None:
    table = text_of(DOCS / "understand" / "architecture.md").partition("| task |")[2].partition("\n\n")[0]
    documented = [name for row in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", row.split("|")[1])]
    assert Counter(documented) == Counter([*PERIODIC, *LOCAL, *(task.name for task in repeated())])


# The changelog names a command that was renamed.
FORMER = {"CHANGELOG.md": {"many_memories"}}


@name_of
def test_every_command_that_a_page_names_exists(page: Path) -> None:
    named = re.findall(r"manage\.py (?:\"?, \")?([a-z_]+)", text_of(page))
    assert set(named) - FORMER.get(page.name, set()) <= set(get_commands())


def endpoints() -> set[str]:
    """Method and address of each call, parameters in braces."""
    routes = [route for route in all_routes() if not route.pattern.startswith("/admin/")]
    addresses = {route.pattern: re.sub(r"<[a-z]+:([a-z_]+)>", r"{\1}", route.pattern) for route in routes}
    calls = {f"{method} {addresses[route.pattern]}" for route in routes for method in route.methods}
    return (calls | OTHER_ENDPOINTS) - VARIANTS


# Not in Django's resolver, or of views that name no methods.
OTHER_ENDPOINTS = {
    "POST /mcp",
    "GET /live",
    "GET /metrics",
    "GET /ready",
    "GET /plugins/memory",
    "GET /plugins/memory/api/…",
}
# The same without a slash, and a session whose id ends with "/restore".
VARIANTS = {"GET /api/v1/memories", *(f"{method} /sessions/{{session_id}}/restore" for method in ("GET", "DELETE"))}


def test_every_endpoint_is_documented_once() -> None:
    generated = re.findall(r"^## ((?:GET|POST|PUT|PATCH|DELETE) \S+)$", text_of(REFERENCE), re.MULTILINE)
    table = [
        call
        for line in text_of(DOCS / "use" / "reference.md").splitlines()
        if line.startswith("| `")
        for call in re.findall(r"`((?:GET|POST) [^`]+)`", line.split("|")[1])
    ]
    assert Counter([*generated, *table]) == Counter(endpoints())


def sample(address: str) -> str:
    uuid = "00000000-0000-4000-8000-000000000000"
    values = {"key_id": uuid, "webhook_id": uuid, "deletion_id": uuid, "version": "1", "kind": "user"}
    return re.sub(r"\{([a-z_]+)\}", lambda found: values.get(found[1], "x"), address)


def exists(method: str, address: str) -> bool:
    methods = {route.pattern: route.methods for route in all_routes()}
    try:
        return method in methods[f"/{resolve(sample(address)).route}"] or f"{method} {address}" in OTHER_ENDPOINTS
    except Resolver404:
        return f"{method} {address}" in OTHER_ENDPOINTS


@name_of
def test_every_endpoint_that_a_page_names_exists(page: Path) -> None:
    named = re.findall(r"`(GET|POST|PUT|PATCH|DELETE) (/[^`?\s]*)", text_of(page))
    assert [call for call in named if not exists(*call)] == []


def codes(kind: type[GatewayError] = GatewayError) -> set[str]:
    return {kind.code}.union(*(codes(child) for child in kind.__subclasses__()))


def test_the_guide_lists_every_error_code() -> None:
    for name in ("memory_gateway.server.asgi", "remote.client.failures", "core.network.model_endpoint"):
        importlib.import_module(name)  # as a server has
    section = text_of(DOCS / "use" / "api.md").split("\n## Errors\n")[1]
    listed = [
        code
        for line in section.splitlines()
        if line.startswith("| ")
        for code in re.findall(r"`([a-z_]+)`", line.split("|")[2])
        if code != "code"
    ]
    assert Counter(listed) == Counter(codes())


def test_every_metric_that_the_page_names_exists() -> None:
    section = text_of(DOCS / "operate" / "deployment.md").split("## Monitoring")[1]
    named = {name.removeprefix("memory_gateway_") for name in re.findall(r"`(memory_gateway_[a-z_]+)", section)}
    code = text_of(PROJECT / "memory_gateway" / "metrics.py") + text_of(PROJECT / "core" / "monitoring.py")
    assert {name for name in named if name.removesuffix("_total") not in code} == set()


def test_every_page_of_the_panel_that_is_listed_exists() -> None:
    section = text_of(DOCS / "operate" / "panel.md").split("## Pages")[1].split("\n## ", maxsplit=1)[0]
    cells = [line.replace("\\|", "").split("|")[2] for line in section.splitlines() if line.startswith("| ")]
    addresses = [
        re.sub("<[a-z]+>", "1", address.partition("?")[0])
        for cell in cells[1:]
        for address in re.findall(r"`([^`]*)`", cell)
    ]
    keys = re.compile(r"^(users|jobs|webhooks)/1/")
    for address in addresses:
        found = resolve("/admin/memory/" + keys.sub(r"\1/00000000-0000-4000-8000-000000000000/", address))
        assert found.app_name == "console", address


def test_every_test_that_the_security_page_names_is_collected() -> None:
    named = re.findall(r"`((?:[a-z_]+/)*test_[a-z_]+\.py)(?:::(\w+))?`", text_of(DOCS / "operate" / "security.md"))
    assert len(named) > 60
    for path, function in named:
        statements = ast.parse(text_of(PROJECT / "tests" / path)).body
        tests = {one.name for one in statements if isinstance(one, ast.FunctionDef) and one.name.startswith("test_")}
        assert tests, path
        assert not function or function in tests, f"{path}::{function}"


# --- links, plots and length -----------------------------------------------------------------------------------------


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives the page's headings."""
    text = re.sub(r"^```.*?^```", "", text_of(page), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@name_of
def test_every_internal_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", text_of(page)):
        if "://" not in link:
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            assert target.is_file(), link
            assert not anchor or anchor in anchors(target), link


def test_every_page_that_the_code_names_exists() -> None:
    files = subprocess.run(
        ["git", "grep", "-IohE", r"\bdocs/[a-z_/-]+\.(md|svg|png)"],
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert [name for name in sorted(set(files.stdout.split())) if not (PROJECT / name).is_file()] == []


@pytest.mark.parametrize("drawing", plot.PLOTS, ids=lambda drawing: drawing.name)
def test_the_plots_show_the_tables(drawing: plot.Plot) -> None:
    assert text_of(DOCS / "_static" / f"{drawing.name}.svg") == plot.drawn(drawing, text_of(plot.PAGE))


def prose(page: Path) -> Iterator[str]:
    """The words of a page's sentences: neither code, tables and headings nor addresses of links."""
    text = re.sub(r"^(`{3,}).*?^\1", "", text_of(page), flags=re.DOTALL | re.MULTILINE)
    for line in text.splitlines():
        if not line.startswith(("|", "#", "    ", "!")):
            yield from re.findall(r"[^\s]*\w[^\s]*", re.sub(r"\]\([^)]*\)", "]", line))


def test_the_english_pages_stay_short() -> None:
    apart = {CHINESE_README, PROJECT / "CHANGELOG.md"}  # a history grows
    english = [page for page in PAGES if page not in apart and "zh" not in page.parts]
    assert sum(len(list(prose(page))) for page in english) <= MAX_WORDS
