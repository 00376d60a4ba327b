"""The subset of OpenStack's upper-constraints for this server: ``python -m tests.packaging.constraints FILE``.

The file is ``upper-constraints.txt`` of openstack/requirements. This module writes the pins of the packages that this
server and its extras install to a file beside it, so that a clone can be tested with them by itself.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[2]
PINS = Path(__file__).with_name("upper-constraints.txt")
EXTRAS = "keystone,cors,metrics,mariadb,profiler"


def resolved(constraints: Path, extras: str = EXTRAS) -> dict[str, str]:
    """Return the versions that pip would install under these constraints, by normalised name."""
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet", "--report", "-"]
    report = subprocess.run(
        [*command, "--constraint", str(constraints), f"{SOURCE}[{extras}]"], check=True, capture_output=True, text=True
    ).stdout
    found = [item["metadata"] for item in json.loads(report)["install"]]
    return {normalised(one["name"]): one["version"] for one in found}


def pins_in(constraints: Path) -> dict[str, str]:
    """Return the lines of a constraints file, by normalised name."""
    lines = [line for line in constraints.read_text().splitlines() if "==" in line and not line.startswith("#")]
    return {normalised(line.partition("=")[0]): line for line in lines}


def normalised(name: str) -> str:
    """Return a package's name in a form that is equal for all spellings."""
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    (given,) = sys.argv[1:]
    pins = pins_in(Path(given))
    concerned = sorted(resolved(Path(given), extras=f"{EXTRAS},test").keys() & pins.keys())
    heading = "# Made by python -m tests.packaging.constraints FILE: the pins of OpenStack that concern this server.\n"
    PINS.write_text(heading + "".join(f"{pins[name]}\n" for name in concerned))
