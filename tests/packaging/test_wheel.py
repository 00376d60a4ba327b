"""The wheel alone creates a database and serves it."""

import re
import subprocess
import zipfile
from pathlib import Path

import pytest

import placement
from tests import servers
from tests.environments import uv
from tests.http_calls import HttpCalls
from tests.packaging.conftest import LEFT_OVER, SOURCE
from tests.servers import Installation


@pytest.fixture(scope="module")
def configured(installation: Installation, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with placement.conf, and the database that the wheel has made."""
    directory = tmp_path_factory.mktemp("configured")
    servers.write_configuration(directory, servers.default_sections(f"sqlite:///{directory / 'placement.sqlite'}"))
    servers.placement_manage(installation, directory, "db", "sync")
    return directory


def test_the_installed_wheel_makes_a_database_and_serves(installation: Installation, configured: Path):
    with servers.running_server(installation, configured) as url:
        call = HttpCalls(url)
        status, document = call("GET", "/", "1.0")
        assert (status, document["versions"][0]["max_version"]) == (200, "1.39")
        assert call("GET", "/allocation_candidates?resources=VCPU:1", "1.39")[0] == 200


def test_the_installed_demo_walks_through(installation: Installation, tmp_path: Path):
    done = _run(installation, tmp_path, installation.command("placement"), "demo", "--port", "0", "--once")
    assert done.returncode == 0
    assert "THE CLAIM" in done.stdout


def test_the_package_comes_from_the_wheel_and_its_environment_is_consistent(installation: Installation, tmp_path: Path):
    uv("pip", "check", "--quiet", "--python", str(installation.python))
    script = "import placement; print(placement.__file__)"
    done = _run(installation, tmp_path, str(installation.python), "-c", script)
    assert Path(done.stdout.strip()).is_relative_to(installation.python.parents[1])


def test_the_wheel_carries_all_that_the_server_loads_but_no_tests_and_nothing_of_an_earlier_build(wheel: Path):
    """Python would import a package that is left over instead of the module."""
    names = set(zipfile.ZipFile(wheel).namelist())
    assert [name for name in names if name.startswith("tests") or name == LEFT_OVER] == []
    assert "placement/app.py" in names
    migrations = [f"placement/{path.relative_to(SOURCE)}" for path in (SOURCE / "migrations/versions").glob("*.py")]
    directory = SOURCE / "placement" / "ui"
    pages = [path for part in ("static", "templates") for path in (directory / part).rglob("*") if path.is_file()]
    pages += [SOURCE / "placement" / "openapi" / name for name in ("page.html", "story.yaml")]
    assert min(len(migrations), len(pages)) > 1
    assert {*migrations, *[str(path.relative_to(SOURCE)) for path in pages]} <= names
    for ending in ("/placement.conf", "/planner.yaml", "/policy.yaml", "/LICENSE"):
        assert [name for name in names if name.endswith(ending)], f"no {ending} in {names}"


def test_the_script_for_apache_holds_the_application(installation: Installation, configured: Path):
    script = installation.command("placement-api")
    load = f"import runpy; print(callable(runpy.run_path({script!r})['application']))"
    variables = {**installation.variables, "OS_PLACEMENT_CONFIG_DIR": str(configured)}
    command = [str(installation.python), "-c", load]
    done = subprocess.run(command, cwd=configured, env=variables, capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


def _run(installation: Installation, directory: Path, *command: str) -> "subprocess.CompletedProcess[str]":
    variables = dict(installation.variables)
    return subprocess.run(command, cwd=directory, env=variables, capture_output=True, text=True, check=False)


def test_the_weigher_for_nova_brings_nothing_and_imports_nothing_of_this_package(tmp_path: Path):
    uv("build", "--quiet", "--wheel", "--out-dir", str(tmp_path), str(SOURCE / "integrations" / "nova"))
    (built,) = tmp_path.glob("placement_server_nova-*.whl")
    with zipfile.ZipFile(built) as wheel:
        files = {name: wheel.read(name).decode() for name in wheel.namelist()}
    modules = {name for name in files if name.endswith(".py")}
    assert modules == {"placement_scores.py", "placement_weigher.py"}
    (metadata,) = (text for name, text in files.items() if name.endswith("/METADATA"))
    assert "Requires-Dist" not in metadata
    assert f"Version: {placement.__version__}" in metadata
    assert not [name for name in modules if re.search(r"^\s*(from|import) placement[ .]", files[name], re.MULTILINE)]
