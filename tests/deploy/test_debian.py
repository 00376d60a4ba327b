"""The Debian package: built, installed in a copy of this system, started by sysvinit and Apache, and removed."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from placement.cli.docs import written
from tests import servers
from tests.deploy.programs import program
from tests.deploy.samples import ETC
from tests.deploy.system_copy import BOOT, SystemCopy, system_copy
from tests.deploy.walk import walk_through

ROOT = ETC.parent
VHOST = """
ServerName 127.0.0.1
Listen 127.0.0.1:{port}
<VirtualHost 127.0.0.1:{port}>
    WSGIScriptAlias / /usr/bin/placement-api
    WSGIDaemonProcess placement processes=2 threads=1 user=placement group=placement display-name=%{{GROUP}}
    WSGIProcessGroup placement
    WSGIApplicationGroup %{{GLOBAL}}
    WSGIPassAuthorization On
    LimitRequestLine 65535
    <Directory /usr/bin>
        Require all granted
    </Directory>
</VirtualHost>
"""
"""As the charm and the Kubernetes operator write it: nothing in it refers to a virtual environment."""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package file, built from the files of the checkout."""
    program("dh", "debhelper")
    source = tmp_path_factory.mktemp("package") / "source"
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0"):
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, source / name)
    build = ["dpkg-buildpackage", "--build=binary", "--no-sign"]
    uncompressed = os.environ | {"DPKG_DEB_COMPRESSOR_TYPE": "none"}
    done = subprocess.run(build, cwd=source, env=uncompressed, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    (built,) = source.parent.glob("*.deb")
    return built


@pytest.fixture
def port() -> int:
    """The port of the packaged service."""
    return servers.free_port()


@pytest.fixture
def installed(package: Path, port: int) -> Iterator[SystemCopy]:
    """A copy of this system with the package, configured."""
    with system_copy() as copy:
        shutil.copy(package, copy.shared / "placement-server.deb")
        url = "sqlite:////var/lib/placement/placement.sqlite"
        servers.write_configuration(copy.shared, servers.default_sections(url))
        copy.run("rm -f /usr/sbin/policy-rc.d")  # made for containers: it forbids packages to start and stop services
        copy.run("dpkg --install /mnt/placement-server.deb")
        copy.run("install -o root -g placement -m 640 /mnt/placement.conf /etc/placement/placement.conf")
        copy.run(f"echo 'OPTIONS=\"--host 127.0.0.1 --port {port} --workers 2\"' > /etc/default/placement-api")
        copy.run("runuser -u placement -- placement-manage db sync")
        yield copy


def test_it_is_started_and_stopped_by_sysvinit(installed: SystemCopy, port: int):
    installed.run("/etc/init.d/placement-api start")
    servers.wait_for_answer(port)
    walk_through(f"http://127.0.0.1:{port}")
    installed.run("/etc/init.d/placement-api status")
    installed.run("/etc/init.d/placement-api reload")
    installed.run("/etc/init.d/placement-api restart")
    servers.wait_for_answer(port)
    log = installed.run("/etc/init.d/placement-api stop; cat /var/log/placement/placement-api.log")
    assert "The configuration was read again" in log
    assert "Traceback" not in log
    installed.run("! /etc/init.d/placement-api status; ! pgrep --uid placement")


def test_every_unit_starts_with_all_its_restrictions(installed: SystemCopy, port: int):
    program("systemd-analyze", "systemd")
    settings = servers.default_sections("sqlite:////var/lib/placement/placement.sqlite")
    settings |= {"journal": {"cadf": "/var/log/placement/cadf.log"}, "metrics": {"enabled": "true"}}
    servers.write_configuration(installed.shared, settings)
    installed.run("install -o root -g placement -m 640 /mnt/placement.conf /etc/placement/placement.conf")
    installed.run(BOOT)
    for path in [*(ROOT / "debian").glob("*.service"), *(ETC / "systemd").glob("*.service")]:
        unit = path.name.removeprefix("placement-server.")
        text = path.read_text(encoding="utf-8").replace("/opt/placement", "/usr/lib/placement-server")
        (installed.shared / unit).write_text(text.replace("--port 8778", f"--port {port}"))
        installed.run(f"systemd-analyze security --offline=true --threshold=30 /mnt/{unit}")
        installed.run(f"cp /mnt/{unit} /etc/systemd/system/ && control daemon-reload && control start {unit}")
        if unit != "placement-cadf.service":
            servers.wait_for_answer(port)
            installed.run("ls /run/placement/metrics-*")
        installed.run(f"control is-active {unit} && control stop {unit} && ! control is-failed {unit}")


def test_apache_runs_its_script_without_being_told_of_the_environment(installed: SystemCopy, port: int):
    program("apache2", "apache2")
    if not Path("/usr/lib/apache2/modules/mod_wsgi.so").exists():
        pytest.skip("there is no mod_wsgi (Debian: libapache2-mod-wsgi-py3)")
    (installed.shared / "placement-api.conf").write_text(VHOST.format(port=port))
    installed.run("rm -f /etc/apache2/sites-enabled/* && echo > /etc/apache2/ports.conf && a2enmod -q wsgi")
    installed.run("cp /mnt/placement-api.conf /etc/apache2/sites-enabled/")
    installed.run("apachectl -k start")
    servers.wait_for_answer(port)
    walk_through(f"http://127.0.0.1:{port}")
    assert "Traceback" not in installed.run("cat /var/log/apache2/error.log; apachectl -k stop")


def test_removing_stops_it_and_leaves_configuration_and_data_and_purging_nothing(installed: SystemCopy, port: int):
    installed.run("/etc/init.d/placement-api start")
    servers.wait_for_answer(port)
    installed.run("dpkg --remove placement-server")
    installed.run("! pgrep --uid placement")
    installed.run("test -s /etc/placement/placement.conf && test -s /var/lib/placement/placement.sqlite")
    installed.run("! test -e /usr/lib/placement-server && ! test -e /usr/bin/placement-api")
    installed.run("dpkg --purge placement-server")
    left = installed.run("ls -d /etc/placement /etc/*/placement* /var/*/placement* /usr/*/placement* || true")
    assert [line for line in left.splitlines() if not line.startswith("ls: ")] == []


def test_the_packages_of_the_reference_and_this_one_exclude_each_other(package: Path):
    fields = subprocess.run(["dpkg-deb", "--field", str(package)], capture_output=True, text=True, check=True).stdout
    for name in ("Conflicts", "Replaces"):
        assert f"{name}: placement-api, placement-common, python3-placement\n" in fields


def test_the_package_brings_a_man_page_of_each_reference_page(package: Path):
    contents = subprocess.run(["dpkg-deb", "--contents", str(package)], capture_output=True, text=True, check=True)
    pages = {f"man{page.suffix[1:]}/{page.name}.gz" for page in map(Path, written("man"))}
    assert {page for page in pages if f"/usr/share/man/{page}\n" not in contents.stdout} == set()
