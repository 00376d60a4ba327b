"""Requests as people paste them: a query string, a line from a log or a shell, a flavor with its extra specs."""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import unquote_plus, urlencode, urlsplit

from placement.domain.flavor_texts import flavor_in
from placement.domain.flavors import flavor_query
from placement.errors import Invalid

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

    Args:
        text: a query string, a path or URL with one, a line of a log or a shell command that contains one, the name of
            a flavor, or a flavor as ``openstack flavor show`` prints it.
        flavors: the query strings of flavors by name.
        root_required: the traits that nova's request filters add for each flavor.

    Raises:
        Invalid: nova refuses the flavor.
    """
    text = text.strip()
    return flavors[text] if text in flavors else _in_capitals(_query_in(text, root_required))


def _query_in(text: str, root_required: Iterable[str]) -> str:
    if found := _IN_A_LINE.search(text):
        return found[1]
    if found := _COMMAND.search(text):
        return urlencode(list(_of_command(found[1])), safe=":,!") or text
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
