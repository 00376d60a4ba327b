"""The section ``levels``: names for the parts of a server, and the traits of the providers that represent them."""

from collections.abc import Mapping
from types import MappingProxyType

from placement.settings.planner.document import DocumentEntry
from placement.settings.planner.values import PlannerSettings

NAME = "[a-z][a-z0-9_]*"
TRAIT = "[A-Z0-9_]{1,255}"


def read_levels(entry: DocumentEntry, _known: PlannerSettings) -> Mapping[str, str]:
    """Return level name -> trait, in the file's order.

    Raises:
        ConfigurationError: a name or trait is malformed, or a trait stands for two levels.
    """
    levels: dict[str, str] = {}
    for name, trait in entry.mapping().items():
        if not trait.is_named_like(NAME):
            raise trait.misnamed("the name of a level in lower case, such as numa")
        levels[name] = trait.text(TRAIT, "a trait such as HW_NUMA_ROOT")
        if list(levels.values()).count(levels[name]) > 1:
            raise trait.wrong("a trait that no other level has")
    return MappingProxyType(levels)
