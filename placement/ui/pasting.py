"""Requests as people paste them: a query string, a line from a log or a shell, a flavor with its extra specs."""

import re
import shlex
from collections.abc import Iterator, Mapping
from urllib.parse import unquote_plus, urlencode, urlsplit

_IN_A_LINE = re.compile(r"allocation_candidates\?([^\s\"'<>]+)")
_CELL = re.compile(r"[|]?\s*([\w:.$-]+)\s*[=|:]\s*[\"']?([\w.:-]+)[\"']?\s*[|,]?")
"""``vcpus=8``, ``| vcpus | 8 |``, ``vcpus: 8``."""

_OF_FLAVORS = {"vcpus": "VCPU", "ram": "MEMORY_MB", "disk": "DISK_GB"}
_SPEC = re.compile(r"(resources|trait)([\w-]{0,64}):([A-Za-z0-9_]+)=[\"']?(\w+)[\"']?")
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


def pasted(text: str, flavors: Mapping[str, str] | None = None) -> str:
    """Return the query string in pasted text, with the names of classes and traits in upper case.

    Args:
        text: a query string, a path or URL with one, a line of a log or a shell command that contains one, the name of
            a flavor, or a flavor as ``openstack flavor show`` prints it.
        flavors: the query strings of flavors by name.
    """
    text = text.strip()
    if flavors and text in flavors:
        return flavors[text]
    return _in_capitals(_query_in(text))


def _query_in(text: str) -> str:
    if found := _IN_A_LINE.search(text):
        return found[1]
    if found := _COMMAND.search(text):
        return urlencode(list(_of_command(found[1])), safe=":,!") or text
    if "?" in text:
        return urlsplit(text).query
    return text if re.match(r"(resources|required)[\w-]*=", text) else _of_flavor(text) or text


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


def _of_flavor(text: str) -> str:
    """Return the query string equivalent to a flavor and its extra specs; empty if the text contains none."""
    resources: dict[str, dict[str, str]] = {"": {}}
    traits: dict[str, list[str]] = {}
    for kind, suffix, name, value in _SPEC.findall(text):
        if kind == "resources" and value.isdecimal():
            resources.setdefault(suffix, {})[name.upper()] = value
        elif kind == "trait" and value in ("required", "forbidden"):
            traits.setdefault(suffix, []).append(name.upper() if value == "required" else f"!{name.upper()}")
    for key, value in _CELL.findall(_SPEC.sub("", text)):
        if key in _OF_FLAVORS and value.isdecimal():
            resources[""].setdefault(_OF_FLAVORS[key], value)
    pairs = [
        (f"resources{suffix}", ",".join([f"{name}:{amount}" for name, amount in amounts.items() if amount != "0"]))
        for suffix, amounts in resources.items()
    ]
    pairs += [(f"required{suffix}", ",".join(names)) for suffix, names in traits.items()]
    if policy := re.search(r"group_policy[\"'\s]*[=|:][\"'\s]*(none|isolate)", text):
        pairs.append(("group_policy", policy[1]))
    return urlencode([(name, value) for name, value in pairs if value], safe=":,!")


def _in_capitals(query: str) -> str:
    """Upper-case the names of classes and traits, which are always in upper case."""
    return "&".join([_parameter(one) for one in query.split("&")])


def _parameter(text: str) -> str:
    key, equals, value = text.partition("=")
    read = unquote_plus(value)
    if not _OF_NAMES.fullmatch(key) or not _NAMES.fullmatch(read) or read == read.upper():
        return text
    prefix = "in:" if read.startswith("in:") else ""
    capitals = prefix + read.removeprefix(prefix).upper()
    return f"{key}{equals}{urlencode({'': capitals}, safe=':,!')[1:]}"
