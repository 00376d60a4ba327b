"""Suggests existing names for one that does not exist."""

from collections.abc import Iterable
from difflib import get_close_matches

MAX_NAMES = 3


def similar_names(name: str, known: Iterable[str]) -> list[str]:
    """Return a few names with similar spelling, or with a word in common other than CUSTOM.

    >>> similar_names("VCPUS", ["VCPU", "PCPU", "PGPU"]), similar_names("ACCELERATOR_FPGA", ["FPGA", "VCPU"])
    (['VCPU', 'PCPU'], ['FPGA'])
    """
    names, words = sorted(known), {*name.split("_")} - {"CUSTOM"}
    related = [one for one in names if not words.isdisjoint(one.split("_"))]
    return [*dict.fromkeys([*get_close_matches(name, names, n=MAX_NAMES), *related])][:MAX_NAMES]
