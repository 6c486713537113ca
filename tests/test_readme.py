"""The README's own lines, pasted one after another into a shell, print what the README says."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.server import running_server

ROOT = Path(__file__).resolve().parent.parent
ADDRESS = "http://127.0.0.1:8010"
# What differs from run to run: keys and resource ids.
RANDOM = re.compile(r"uk_[A-Za-z0-9_-]{43}|r_[0-9a-f]{32}")


def main_job(readme: str) -> list[tuple[str, str]]:
    """The commands of the console block with the output that stands under each."""
    block = re.search(r"^```console\n(.*?)^```", (ROOT / readme).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert block, f"{readme} shows no console block"
    shown = re.split(r"^\$ ", block[1], flags=re.MULTILINE)[1:]
    return [tuple(part.split("\n", 1)) for part in shown]  # type: ignore[misc]


@pytest.mark.parametrize("readme", ["README.md", "README.zh-CN.md"])
def test_the_main_job_prints_what_the_readme_shows(readme: str, tmp_path: Path) -> None:
    for tool in ("bash", "curl"):
        if not shutil.which(tool):
            pytest.skip(f"{tool} is not installed")
    job = main_job(readme)
    assert len(job) == 5
    with running_server(tmp_path) as server:
        # A mark after each command's output tells them apart; all run in one shell, as a reader's would.
        script = "".join(f"{command}\nprintf '\\n--end--\\n'\n" for command, _ in job).replace(ADDRESS, server.url)
        run = subprocess.run(
            ["bash"], input=script, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
    printed = run.stdout.split("\n--end--\n")[:-1]
    assert [RANDOM.sub("…", text).strip() for text in printed] == [RANDOM.sub("…", text).strip() for _, text in job]


def test_both_pages_show_the_two_commands_first() -> None:
    for readme in ("README.md", "README.zh-CN.md"):
        text = (ROOT / readme).read_text(encoding="utf-8")
        assert text.index("make run") < text.index("make test") < text.index("curl")


def table_rows(readme: str) -> set[str]:
    return set(re.findall(r"^\| `([^`]+)`", (ROOT / readme).read_text(encoding="utf-8"), re.MULTILINE))


def test_the_chinese_page_names_the_same_endpoints_settings_and_commands() -> None:
    assert table_rows("README.md") == table_rows("README.zh-CN.md")
