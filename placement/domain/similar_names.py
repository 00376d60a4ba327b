"""Names that somebody may have meant who wrote one that does not exist."""

from collections.abc import Iterable
from difflib import get_close_matches

MOST = 3


def similar_names(name: str, known: Iterable[str]) -> list[str]:
    """Return some names that are spelled alike, or have a word in common besides CUSTOM.

    >>> similar_names("VCPUS", ["VCPU", "PCPU", "PGPU"]), similar_names("ACCELERATOR_FPGA", ["FPGA", "VCPU"])
    (['VCPU', 'PCPU'], ['FPGA'])
    """
    names, words = sorted(known), {*name.split("_")} - {"CUSTOM"}
    related = [one for one in names if not words.isdisjoint(one.split("_"))]
    return [*dict.fromkeys([*get_close_matches(name, names, n=MOST), *related])][:MOST]
