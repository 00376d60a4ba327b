"""A flavor means what it means to nova: the same query, or none where nova does not boot it."""

import random
import unittest
from collections import Counter

import nova.conf

from placement.formats.flavors import Flavor, flavor_query
from tests.nova.nova_flavors import asked_by_nova, documented_specs, parameters, random_flavors
from tests.worked_flavors import WORKED

NUMBER = 2000


def asked_here(flavor: Flavor, *, owner: bool) -> dict[str, frozenset[str]] | None:
    try:
        return parameters(flavor_query(flavor, root_required=["OWNER_NOVA"] if owner else []).query)
    except ValueError:
        return None


class Flavors(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        """Give nova its defaults, and leave them unread to nova's own fixtures, which read them for each test."""
        nova.conf.CONF([], project="nova", default_config_files=[])
        cls.addClassCleanup(nova.conf.CONF.reset)

    def test_random_flavors_ask_what_nova_asks(self) -> None:
        outcomes: Counter[bool] = Counter()
        for number, flavor in enumerate(random_flavors(NUMBER, random.Random())):
            asked = asked_by_nova(flavor, owner=bool(number % 2))
            assert asked_here(flavor, owner=bool(number % 2)) == asked, flavor
            outcomes[asked is None] += 1
        assert outcomes[False] > NUMBER / 2
        assert outcomes[True] > NUMBER / 20

    def test_every_documented_extra_spec_that_nova_asks_for_is_asked_for_here(self) -> None:
        for spec in documented_specs():
            for value in (*spec.value.get("enum", []), "1", "true", "4GB"):
                name = spec.name.replace("{group}", "").replace("{resource}", "A").replace("{trait}", "A")
                flavor = Flavor(4, 2048, 20, extra_specs={name: value})
                if (asked := asked_by_nova(flavor)) is not None:
                    assert asked_here(flavor, owner=False) == asked, flavor

    def test_the_table_of_the_default_run_is_what_nova_asks(self) -> None:
        for name, flavor, query in WORKED:
            assert asked_by_nova(flavor) == (parameters(query) if query else None), name
