"""Reads flavors as people have them: entries of nova's tools in JSON, and text such as a table or assignments."""

import json
import re
from collections.abc import Mapping
from typing import Any

from placement.domain.flavors import Flavor

NUMBERS = ("vcpus", "ram", "disk", "ephemeral", "swap")

_PROPERTY = re.compile(r"\s*([^=,\s][^=,]*)=(?:'(.*?)'(?=\s*(?:,\s*[^=,\s][^=,]*=|$))|([^,]*))(?:,|$)", re.DOTALL)
"""``hw:numa_cpus.0='0,1', a=1``, as older clients print properties."""

_PAIR = re.compile(r"(?<![\w.:-])([\w.:-]+)[\"']?\s*[=|:]\s*(?:'([^']*)'|\"([^\"=]*)\"|([^\s,|'\"={}]+)(?=[\s,|}]|$))")
"""``vcpus=8``, ``| vcpus | 8 |``, ``vcpus: 8``, ``hw:cpu_policy='dedicated'``, ``"vcpus": "8"``."""

LONGEST_TEXT = 10_000
"""Of a pasted flavor, in characters."""

_WRAPPED = re.compile(r"\|[ ]*\n[ ]*\|[ ]+\|")


def flavor_of(entry: Mapping[str, Any]) -> Flavor:
    """Return the flavor in an entry of ``openstack flavor list --long -f json`` or ``flavor show -f json``.

    Raises:
        ValueError: a number is none.

    >>> flavor_of({"VCPUs": 2, "RAM": 512, "Swap": "", "Properties": "hw:numa_cpus.0='0,1', a='b'"}).extra_specs
    {'hw:numa_cpus.0': '0,1', 'a': 'b'}
    """
    fields = plain_fields(entry)
    properties = fields.get("properties") or fields.get("extra_specs") or {}
    if isinstance(properties, str):
        properties = {match[1]: match[2] if match[3] is None else match[3] for match in _PROPERTY.finditer(properties)}
    if not isinstance(properties, Mapping):
        raise ValueError("the properties are neither an object nor text.")
    numbers = {name: _number(name, fields.get(name)) for name in NUMBERS}
    return Flavor(**numbers, extra_specs={str(key): str(value) for key, value in properties.items()})


def plain_fields(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry by normalised names: ``VCPUs``, ``Is Public``, ``OS-FLV-EXT-DATA:ephemeral`` have several."""
    return {key.rpartition(":")[2].lower().replace(" ", "_"): value for key, value in entry.items()}


def flavor_in(text: str) -> Flavor | None:
    r"""Return the flavor in JSON, in a table, or in other text with its fields and extra specs; None without one.

    Longer texts are not read.

    >>> flavor_in("| ram | 512 |\n| properties | resources:PGPU='1', hw:cpu_policy='dedicated' |\n| vcpus | 8 |")
    ... # doctest: +ELLIPSIS
    Flavor(vcpus=8, ram=512, ..., extra_specs={'resources:PGPU': '1', 'hw:cpu_policy': 'dedicated'})

    Raises:
        ValueError: a number is none.
    """
    if len(text) > LONGEST_TEXT:
        return None
    try:
        entry = json.loads(text)
    except (ValueError, RecursionError):
        entry = _fields_in(text)
    if not isinstance(entry, Mapping):
        return None
    entry = entry.get("flavor", entry)
    asks = plain_fields(entry).keys() & {*NUMBERS, "properties", "extra_specs"} if isinstance(entry, Mapping) else ()
    return flavor_of(entry) if asks else None


def _fields_in(text: str) -> dict[str, Any]:
    """Return the fields in text, with everything else as properties; empty if it is not about a flavor."""
    fields: dict[str, Any] = {}
    specs = {}
    for key, *values in _PAIR.findall(_WRAPPED.sub(" ", text)):
        field = key.rpartition(":")[2].removeprefix("os_flv_ext_data_").lower()
        if field in NUMBERS:
            fields[field] = "".join(values)
        elif ":" in key or key == "group_policy":
            specs[key] = "".join(values)
    return {**fields, "properties": specs} if fields or any(key.startswith("resources") for key in specs) else {}


def _number(name: str, value: Any) -> int:
    if value in (None, ""):
        return 0
    if isinstance(value, int) or (isinstance(value, str) and value.isdecimal()):
        return int(value)
    raise ValueError(f"{name} is {value!r}, not a number.")
