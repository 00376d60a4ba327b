"""The sections ``flavors`` and ``private_flavors``: named requests whose headroom is counted, and who may use them.

A flavor is a query string, or has the fields that it has in nova.
"""

from collections.abc import Mapping
from types import MappingProxyType

from placement.domain.flavors import Flavor, flavor_query
from placement.settings.planner.document import DocumentEntry
from placement.settings.planner.values import PlannerSettings

NUMBERS = ("vcpus", "ram", "disk", "ephemeral", "swap")


def read_flavors(entry: DocumentEntry, _known: PlannerSettings) -> Mapping[str, str]:
    """Return flavor name -> query string, in the file's order.

    Raises:
        ConfigurationError: a flavor is neither a query string nor one of nova's flavors.
    """
    return MappingProxyType({name: _query(flavor) for name, flavor in entry.mapping().items()})


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


def _query(entry: DocumentEntry) -> str:
    if not entry.is_mapping:
        return entry.text(".*resources.*=.+", "a query string such as resources=VCPU:2")
    fields = entry.fields(*NUMBERS, "extra_specs")
    numbers = {name: fields[name].whole_number() for name in NUMBERS if name in fields}
    specs = fields["extra_specs"].mapping() if "extra_specs" in fields else {}
    flavor = Flavor(**numbers, extra_specs={key: spec.text() for key, spec in specs.items()})
    try:
        return flavor_query(flavor).query
    except ValueError:
        raise entry.wrong("a whole number for each resources:CLASS") from None
