"""The Helm chart, rendered by Helm's code and checked by Kubernetes' schemas (`make chart`)."""

import json
import os
import re
import subprocess
import tarfile
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import release
from tests.deploy.test_image import PROJECT

CHART = PROJECT / "deploy" / "chart"
PYTHON = PROJECT / "build" / "chart" / "bin" / "python"
VALUES: dict[str, Any] = {
    "host": "memory.example.org",
    "trustedProxies": "10.244.0.0/16",
    "secrets": {"gateway": "gateway", "postgresql": "postgresql"},
    "storage": {"url": "s3://memory/files"},
}
with_helm = pytest.mark.skipif(
    not PYTHON.exists() and "CI" not in os.environ, reason="Helm's library is installed by `make chart`"
)


def rendered(**values: Any) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the objects of the chart by kind and component."""
    done = subprocess.run([PYTHON, "tests/deploy/render_chart.py"], input=json.dumps(VALUES | values), cwd=PROJECT,
                          capture_output=True, text=True, check=True)  # fmt: skip
    answer = json.loads(done.stdout)
    assert answer["problems"] == []
    return {(one["kind"], component_of(one)): one for one in answer["objects"]}


def component_of(found: dict[str, Any]) -> str:
    return str(found["metadata"]["name"]).removeprefix("demo-memory-gateway").removeprefix("-")


def pods(objects: dict[tuple[str, str], dict[str, Any]]) -> list[dict[str, Any]]:
    return [one["spec"]["template"]["spec"] for one in objects.values() if "template" in one["spec"]]


def containers(objects: dict[tuple[str, str], dict[str, Any]]) -> list[dict[str, Any]]:
    return [one for pod in pods(objects) for one in [*pod.get("initContainers", []), *pod["containers"]]]


@pytest.fixture(scope="module")
def objects() -> dict[tuple[str, str], dict[str, Any]]:
    return {key: one if "spec" in one else one | {"spec": {}} for key, one in rendered().items()}


@with_helm
def test_the_chart_has_what_a_cluster_needs(objects: dict[tuple[str, str], dict[str, Any]]) -> None:
    assert set(objects) == {
        ("ConfigMap", ""),
        ("Deployment", "gateway"),
        ("Deployment", "worker"),
        ("Ingress", ""),
        ("Job", "migrate"),
        ("NetworkPolicy", ""),
        ("PodDisruptionBudget", "gateway"),
        ("PodDisruptionBudget", "worker"),
        ("Service", ""),
        ("ServiceAccount", ""),
    }


@with_helm
def test_no_container_has_rights(objects: dict[tuple[str, str], dict[str, Any]]) -> None:
    assert len(containers(objects)) == 4
    for pod in pods(objects):
        assert (pod["automountServiceAccountToken"], pod["securityContext"]["runAsNonRoot"]) == (False, True)
        assert pod["securityContext"]["runAsUser"] == 10001
    for container in containers(objects):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert {one["mountPath"] for one in container["volumeMounts"]} == {"/data", "/tmp"}  # noqa: S108


@with_helm
def test_the_probes_ask_what_they_mean(objects: dict[tuple[str, str], dict[str, Any]]) -> None:
    [gateway] = objects["Deployment", "gateway"]["spec"]["template"]["spec"]["containers"]
    probes = {name: gateway[f"{name}Probe"]["httpGet"]["path"] for name in ("startup", "liveness", "readiness")}
    assert probes == {"startup": "/live", "liveness": "/live", "readiness": "/ready"}


@with_helm
def test_the_service_and_the_budgets_choose_the_right_pods(objects: dict[tuple[str, str], dict[str, Any]]) -> None:
    labels = {
        part: objects["Deployment", part]["spec"]["template"]["metadata"]["labels"] for part in ("gateway", "worker")
    }
    chosen = {
        part: [name for name, found in labels.items() if selector.items() <= found.items()]
        for part, selector in (
            ("service", objects["Service", ""]["spec"]["selector"]),
            ("gateway", objects["PodDisruptionBudget", "gateway"]["spec"]["selector"]["matchLabels"]),
            ("worker", objects["PodDisruptionBudget", "worker"]["spec"]["selector"]["matchLabels"]),
            ("policy", objects["NetworkPolicy", ""]["spec"]["podSelector"]["matchLabels"]),
        )
    }
    assert chosen == {
        "service": ["gateway"],
        "gateway": ["gateway"],
        "worker": ["worker"],
        "policy": ["gateway", "worker"],
    }


@with_helm
def test_migrations_run_before_the_pods_and_need_nothing_that_is_made_later(
    objects: dict[tuple[str, str], dict[str, Any]],
) -> None:
    job = objects["Job", "migrate"]
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
    pod = job["spec"]["template"]["spec"]
    assert "serviceAccountName" not in pod
    for container in [*pod["initContainers"], *pod["containers"]]:
        assert [*container["envFrom"]] == [{"secretRef": {"name": name}} for name in ("gateway", "postgresql")]
        assert {one["name"]: one["value"] for one in container["env"]} == objects["ConfigMap", ""]["data"]


@with_helm
def test_the_settings_are_those_of_the_gateway() -> None:
    objects = rendered(
        basePath="/memory",
        settings={"MEMORY_GATEWAY_OAUTH": "true"},
        secrets={**VALUES["secrets"], "s3": "s3", "redis": "redis"},
        worker={"metrics": True, "concurrency": 4},
    )
    data = objects["ConfigMap", ""]["data"]
    assert (data["MEMORY_GATEWAY_OAUTH"], data["MEMORY_GATEWAY_BASE_PATH"]) == ("true", "/memory")
    known = set(re.findall(r"^#? ?(MEMORY_GATEWAY_[A-Z_]+)=", (PROJECT / ".env.example").read_text(), re.MULTILINE))
    assert {name for name in data if name.startswith("MEMORY_")} - known == {"MEMORY_GATEWAY_ENV_FILE"}
    assert objects["Ingress", ""]["spec"]["rules"][0]["http"]["paths"][0]["path"] == "/memory"
    [worker] = objects["Deployment", "worker"]["spec"]["template"]["spec"]["containers"]
    assert worker["args"] == ["manage", "worker", "--concurrency=4", "--metrics=0.0.0.0:9108"]
    assert [one["secretRef"]["name"] for one in worker["envFrom"][1:]] == ["gateway", "postgresql", "s3", "redis"]


@with_helm
@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"host": ""}, "host"),
        ({"host": "Memory/x"}, "host"),
        ({"trustedProxies": ""}, "trustedProxies"),
        ({"secrets": {"gateway": "", "postgresql": "p"}}, "gateway"),
        ({"storage": {"url": "file:///data"}}, "url"),
        ({"settings": {"PATH": "/bin"}}, "PATH"),
        ({"settings": {"MEMORY_GATEWAY_OAUTH": True}}, "MEMORY_GATEWAY_OAUTH"),
    ],
)
def test_values_that_cannot_work_are_refused(values: dict[str, Any], named: str) -> None:
    done = subprocess.run([PYTHON, "tests/deploy/render_chart.py"], input=json.dumps(VALUES | values), cwd=PROJECT,
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert (done.returncode, named in done.stderr) == (1, True), done.stderr


def test_the_chart_has_the_version_of_the_gateway() -> None:
    version = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert (chart["version"], chart["appVersion"]) == (version, version)


def test_the_ingress_has_the_limit_of_the_compose_proxy() -> None:
    annotations = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))["ingress"]["annotations"]
    limit = re.search(r"max_size (\d+)MB", (PROJECT / "deploy" / "Caddyfile").read_text(encoding="utf-8"))
    assert limit
    assert annotations["nginx.ingress.kubernetes.io/proxy-body-size"] == f"{limit[1]}m"


def test_each_value_of_the_templates_has_a_default() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    templates = "".join(path.read_text(encoding="utf-8") for path in (CHART / "templates").iterdir())
    for dotted in set(re.findall(r"\.Values\.([A-Za-z0-9.]+)", templates)):
        found = values
        for name in dotted.split("."):
            assert name in found, dotted
            found = found[name]


def test_the_release_has_the_chart_as_helm_packs_it(tmp_path: Path) -> None:
    release.pack_chart(PROJECT, tmp_path, "memory-gateway-0.1.0")
    with tarfile.open(tmp_path / "memory-gateway-0.1.0-chart.tgz") as members:
        assert "memory-gateway/Chart.yaml" in members.getnames()
