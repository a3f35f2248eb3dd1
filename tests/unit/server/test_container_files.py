"""The files for containers name only options, variables and ports that the server has, and no key."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from asterism.access.keys import PUBLIC_KEYS
from asterism.server.configure import serve_options
from asterism.server.doors import DOORS

PROJECT = Path(__file__).resolve().parents[3]
START = PROJECT / "scripts" / "container_start.sh"
FILES = [PROJECT / "Containerfile", PROJECT / "compose.yaml", START]
OPTIONS = serve_options()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_variable_is_that_of_an_option(file: Path) -> None:
    named = set(re.findall(r"ASTERISM_\w+", file.read_text()))
    assert named
    assert named <= {option.environment_variable for option in OPTIONS}
    assert not any(key in file.read_text() for key in PUBLIC_KEYS)


def test_the_command_has_options_of_the_server() -> None:
    command = re.findall(r"^CMD \[(.*)\]$", (PROJECT / "Containerfile").read_text(), re.MULTILINE)[-1]
    flags = set(re.findall(r"--[a-z-]+", command))
    assert flags == {"--data", "--host"}
    assert flags <= {option.flag for option in OPTIONS}


def test_the_ports_are_the_defaults_of_the_doors() -> None:
    defaults = {str(port.default) for door in DOORS for port in door.ports}
    exposed = re.search(r"^EXPOSE (.*)$", (PROJECT / "Containerfile").read_text(), re.MULTILINE)
    assert exposed is not None
    assert set(exposed[1].split()) == defaults
    published = re.findall(r'- "127\.0\.0\.1:(\d+):(\d+)"', (PROJECT / "compose.yaml").read_text())
    assert {inner for _, inner in published} == {outer for outer, _ in published} == defaults


def test_the_container_does_not_serve_without_a_key() -> None:
    refused = subprocess.run(["sh", START, "serve"], env={}, capture_output=True, text=True, check=False)
    assert refused.returncode != 0
    assert "ASTERISM_KEY: is missing; set it to a key of your own" in refused.stderr


def test_compose_reads_its_file() -> None:
    yaml = pytest.importorskip("yaml")
    service = yaml.safe_load((PROJECT / "compose.yaml").read_text())["services"]["asterism"]
    assert service["build"]["dockerfile"] == "Containerfile"
    assert list(service["environment"]) == ["ASTERISM_KEY"]
