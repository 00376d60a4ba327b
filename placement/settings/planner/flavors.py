"""The sections ``flavors`` and ``private_flavors``: named requests whose headroom is counted, and who may use them.

A flavor is a query string, or has the fields that it has in nova.
"""

from collections.abc import Mapping
from types import MappingProxyType

from placement.domain.flavor_texts import NUMBERS
from placement.domain.flavors import Flavor, flavor_query
from placement.settings.planner.document import DocumentEntry
from placement.settings.planner.values import PlannerSettings

TRAIT = "!?[A-Z0-9_]{1,255}"


def read_flavor_root_required(entry: DocumentEntry, _known: PlannerSettings) -> tuple[str, ...]:
    """Return the traits that request filters of this cloud's nova add for each flavor.

    Raises:
        ConfigurationError: one is no trait.
    """
    return tuple(each.text(TRAIT, "a trait such as OWNER_NOVA") for each in entry.items())


def read_flavors(entry: DocumentEntry, known: PlannerSettings) -> Mapping[str, str]:
    """Return flavor name -> query string, in the file's order.

    Raises:
        ConfigurationError: a flavor is neither a query string nor one of nova's flavors.
    """
    return MappingProxyType({name: _query(flavor, known) for name, flavor in entry.mapping().items()})


def read_private_flavors(entry: DocumentEntry, known: PlannerSettings) -> frozenset[str]:
    """Return the names of flavors that not every project may use.

    Raises:
        ConfigurationError: there is no such flavor.
    """
    names = {item.text(): item for item in entry.items()}
    for name, item in names.items():
        if name not in known.flavors:
            raise item.wrong("the name of a flavor")
    return frozenset(names)


def _query(entry: DocumentEntry, known: PlannerSettings) -> str:
    if not entry.is_mapping:
        return entry.text(".*resources.*=.+", "a query string such as resources=VCPU:2")
    fields = entry.fields(*NUMBERS, "extra_specs")
    numbers = {name: fields[name].whole_number() for name in NUMBERS if name in fields}
    specs = fields["extra_specs"].mapping() if "extra_specs" in fields else {}
    flavor = Flavor(**numbers, extra_specs={key: spec.text() for key, spec in specs.items()})
    try:
        return flavor_query(flavor, root_required=known.flavor_root_required).query
    except ValueError as wrong:
        raise entry.wrong(f"a flavor that nova boots ({wrong})") from None
