"""Requests as people paste them: a query string, a line from a log or a shell, a flavor with its extra specs."""

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any
from urllib.parse import unquote_plus, urlencode, urlsplit

from placement.errors import Invalid
from placement.formats.flavors import Flavor, flavor_query

NUMBERS = ("vcpus", "ram", "disk", "ephemeral", "swap")

_PROPERTY = re.compile(r"\s*([^=,\s][^=,]*)=(?:'(.*?)'(?=\s*(?:,\s*[^=,\s][^=,]*=|$))|([^,]*))(?:,|$)", re.DOTALL)
"""``hw:numa_cpus.0='0,1', a=1``, as older clients print properties."""

_PAIR = re.compile(r"(?<![\w.:-])([\w.:-]+)[\"']?\s*[=|:]\s*(?:'([^']*)'|\"([^\"=]*)\"|([^\s,|'\"={}]+)(?=[\s,|}]|$))")
"""``vcpus=8``, ``| vcpus | 8 |``, ``vcpus: 8``, ``hw:cpu_policy='dedicated'``, ``"vcpus": "8"``."""

LONGEST_TEXT = 10_000
"""Of a pasted flavor, in characters."""

_WRAPPED = re.compile(r"\|[ ]*\n[ ]*\|[ ]+\|")


def flavor_of(entry: Mapping[str, Any]) -> Flavor:
    """Return the flavor in an entry of ``openstack flavor list --long -f json`` or ``show``; or ValueError.

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


_IN_A_LINE = re.compile(r"allocation_candidates\?([^\s\"'<>]+)")
_COMMAND = re.compile(r"allocation candidate list\b(.*)", re.DOTALL)
_OPTIONS = {
    "--resource": "resources",
    "--required": "required",
    "--forbidden": "required",
    "--member-of": "member_of",
    "--limit": "limit",
    "--group-policy": "group_policy",
}

_NAMES = re.compile(r"[A-Za-z0-9_:,!\s]+")
_OF_NAMES = re.compile(r"(resources|required).*|root_required")


def pasted(text: str, flavors: Mapping[str, str], root_required: Iterable[str] = ()) -> str:
    """Return the query string in pasted text, with the names of classes and traits in upper case.

    The text is a query string, a path or URL with one, a line of a log or a shell command, the name of a flavor, or a
    flavor as ``openstack flavor show`` prints it: Invalid if it is none of these, or if nova refuses the flavor.
    ``root_required`` has the traits that nova's request filters add for each.
    """
    text = text.strip()
    if text in flavors:
        return flavors[text]
    query = _query_in(text, root_required)
    if text and "=" not in query:
        similar = get_close_matches(query, flavors, n=1)
        hint = f" Did you mean {similar[0]!r}?" if similar else ""
        raise Invalid(f"{query[:100]!r} is no query string, and no flavor in planner.yaml has this name.{hint}")
    return "&".join([_in_capitals(parameter) for parameter in query.split("&")])


def _query_in(text: str, root_required: Iterable[str]) -> str:
    if match := _IN_A_LINE.search(text):
        return match[1]
    if match := _COMMAND.search(text):
        return urlencode(list(_of_command(match[1])), safe=":,!") or text
    if "?" in text:
        return urlsplit(text).query
    if re.match(r"(resources|required)[\w-]*=", text):
        return text
    try:
        flavor = flavor_in(text)
        return flavor_query(flavor, root_required=root_required).query if flavor else text
    except ValueError as wrong:
        raise Invalid(str(wrong)) from wrong


def _of_command(options: str) -> Iterator[tuple[str, str]]:
    """Yield the parameters equivalent to the options of ``openstack allocation candidate list``."""
    try:
        words = iter(shlex.split(options))
    except ValueError:
        return
    resources: list[str] = []
    for word in words:
        name, _, value = word.partition("=") if word.startswith("--") else (word, "", "")
        if name not in _OPTIONS:
            continue
        value = value or next(words, "")
        if name == "--resource":
            resources.append(value.replace("=", ":"))
        else:
            yield _OPTIONS[name], f"!{value}" if name == "--forbidden" else value
    if resources:
        yield "resources", ",".join(resources)


def _in_capitals(text: str) -> str:
    """Return a parameter with the names of classes and traits in upper case, as they always are."""
    key, equals, value = text.partition("=")
    read = unquote_plus(value)
    if not _OF_NAMES.fullmatch(key) or not _NAMES.fullmatch(read) or read == read.upper():
        return text
    prefix = "in:" if read.startswith("in:") else ""
    capitals = prefix + read.removeprefix(prefix).upper()
    return f"{key}{equals}{urlencode({'': capitals}, safe=':,!')[1:]}"
