"""Flavors, and what nova asks of Placement for them; None where it does not boot them.

tests/nova compares the table with nova itself.
"""

from pathlib import Path

import yaml

from placement.formats.flavors import Flavor

AT_ROOT = "&root_required=!COMPUTE_STATUS_DISABLED"
ROWS: list[dict[str, str]] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))


def _row(*, says: str, specs: str, asks: str | None = None, root: str = "") -> tuple[str, Flavor, str | None]:
    extra_specs = dict(spec.split("=") for spec in specs.split())
    at_root = AT_ROOT.replace("!", f"{root},!") if root else AT_ROOT
    return says, Flavor(4, 8192, 20, extra_specs=extra_specs), asks and asks + at_root


WORKED: list[tuple[str, Flavor, str | None]] = [
    ("plain", Flavor(4, 8192, 20), "resources=DISK_GB:20,MEMORY_MB:8192,VCPU:4" + AT_ROOT),
    ("no disk", Flavor(1, 512), "resources=MEMORY_MB:512,VCPU:1" + AT_ROOT),
    (
        "ephemeral and swap are disk",
        Flavor(1, 512, 10, ephemeral=5, swap=1025),
        "resources=DISK_GB:17,MEMORY_MB:512,VCPU:1" + AT_ROOT,
    ),
    *[_row(**row) for row in ROWS],
]
