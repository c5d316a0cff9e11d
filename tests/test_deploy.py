"""The files in deploy/ agree with the server: paths, ports, options, time-outs."""

import re
import shlex

import pytest
import typer
import yaml

from sentloom.cli import app
from sentloom.serving.gate import OPEN, PATHS
from sentloom.serving.server import LAST_SECONDS, SHUTDOWN_SECONDS
from sentloom.serving.service import VARIABLE, ServiceLimits
from tests.paths import ROOT

DEPLOY = ROOT / "deploy"
ENDS_WITHIN = SHUTDOWN_SECONDS + 2 + LAST_SECONDS  # seconds; 2 for uvicorn to close what was cut off
SERVE = typer.main.get_command(app).commands["serve"]


def read(name):
    return list(yaml.safe_load_all((DEPLOY / name).read_text()))


def instruction(name):
    """The JSON list of an instruction of the Dockerfile."""
    found = re.search(rf"^{name} (\[.*\])$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)
    return yaml.safe_load(found[1])


def parsed(arguments):
    """The values of a command line of `serve`."""
    return SERVE.make_context("serve", [str(argument) for argument in arguments], resilient_parsing=False).params


def test_the_image_runs_a_valid_command_on_the_port_that_it_exposes():
    entry, default = instruction("ENTRYPOINT"), instruction("CMD")
    assert entry[:2] == ["sentloom", "serve"]
    values = parsed([*entry[2:], *default])
    assert (values["host"], values["port"], values["models"]) == ("0.0.0.0", 8080, ["embedded"])
    text = (DEPLOY / "Dockerfile").read_text()
    assert "EXPOSE 8080" in text
    assert "http://127.0.0.1:8080/health" in text
    for copied in re.findall(r"^COPY (.+) \S+$", text, re.MULTILINE):
        assert all((ROOT / name).exists() for name in shlex.split(copied))


def test_the_image_installs_extras_that_exist():
    text = (DEPLOY / "Dockerfile").read_text()
    (extras,) = re.findall(r"^ARG EXTRAS=(.+)$", text, re.MULTILINE)
    assert 'pip install ".[$EXTRAS]"' in text
    assert {"serve", "onnx", "ctranslate2"} <= set(extras.split(","))  # docs/export.md recommends these exports
    project = (ROOT / "pyproject.toml").read_text()
    assert all(re.search(rf"^{extra} = \[", project, re.MULTILINE) for extra in extras.split(","))


def test_compose_gives_both_services_the_key_and_prometheus_reads_a_path_that_exists():
    (compose,) = read("compose.yaml")
    (prometheus,) = read("prometheus.yaml")
    serve, watch = compose["services"]["serve"], compose["services"]["prometheus"]
    values = parsed([*instruction("ENTRYPOINT")[2:], *serve["command"]])
    (job,) = prometheus["scrape_configs"]
    secret = f"/run/secrets/{serve['secrets'][0]}"
    assert str(values["api_key_file"]) == job["authorization"]["credentials_file"] == secret
    assert serve["secrets"] == watch["secrets"] == list(compose["secrets"])
    assert job["static_configs"][0]["targets"] == [f"serve:{values['port']}"]
    assert "/metrics" in PATHS  # Prometheus' default path
    assert (
        ROOT / "deploy" / serve["build"]["context"] / serve["build"]["dockerfile"]
    ).resolve() == DEPLOY / "Dockerfile"
    assert (DEPLOY / watch["volumes"][0].split(":")[0]).is_file()
    assert all(port.startswith("127.0.0.1:") for one in (serve, watch) for port in one["ports"])
    assert int(serve["stop_grace_period"].removesuffix("s")) > ENDS_WITHIN


def test_kubernetes_probes_need_no_key_and_shutdown_has_time():
    deployment, service = read("kubernetes.yaml")
    pod = deployment["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    for kind in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[kind]["httpGet"]["path"] in OPEN
        assert container[kind]["httpGet"]["port"] == container["ports"][0]["name"]
        assert container[kind]["timeoutSeconds"] > ServiceLimits().probe_seconds
    assert container["env"][0]["name"] == VARIABLE
    assert (
        container["ports"][0]["containerPort"] == parsed([*instruction("ENTRYPOINT")[2:], *container["args"]])["port"]
    )
    (_, waits) = container["lifecycle"]["preStop"]["exec"]["command"]
    assert pod["spec"]["terminationGracePeriodSeconds"] > ENDS_WITHIN + int(waits)
    assert deployment["spec"]["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod["spec"]["volumes"]}


@pytest.mark.parametrize("name", ["compose.yaml", "kubernetes.yaml", "prometheus.yaml"])
def test_no_key_is_written_down(name):
    assert not re.search(r"[0-9a-f]{32}", (DEPLOY / name).read_text())
