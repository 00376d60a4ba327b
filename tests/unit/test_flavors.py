"""nova's flavors as the requests that nova sends."""

import pytest

from placement.domain.flavors import Flavor, flavor_query
from tests.worked_flavors import WORKED


@pytest.mark.parametrize(("flavor", "query"), [row[1:] for row in WORKED], ids=[row[0] for row in WORKED])
def test_a_flavor_asks_what_nova_asks(flavor: Flavor, query: str | None) -> None:
    if query is None:
        with pytest.raises(ValueError, match=r"^(nova|Placement) refuses"):
            flavor_query(flavor)
    else:
        assert flavor_query(flavor).query == query


def test_what_only_nova_looks_at_is_named() -> None:
    specs = {"hw:numa_nodes": "2", "hw:cpu_policy": "dedicated", "resources:PGPU": "many", "hw:tpm_model": "tpm-tis"}
    without = flavor_query(Flavor(4, 8192, extra_specs=specs)).without_meaning
    assert without == ("hw:numa_nodes", "hw:tpm_model", "resources:PGPU")
