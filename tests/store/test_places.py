"""Where the providers of trees lie, if some share with other trees."""

from placement.domain.levels import Layout
from placement.domain.tree import Tree
from placement.store.search.levels import add_places, fits_in

PLACE, POOL, HOST, NODE, PLAIN = 11, 12, 20, 21, 30


def test_who_shares_lies_in_its_place_at_home_and_in_none_elsewhere():
    """A pool in a place of its own tree (10) serves a host with a NUMA node, and one that has no place at all."""
    layout = Layout(
        {10: None, PLACE: 10, POOL: PLACE, HOST: None, NODE: HOST}, {PLACE: 1, NODE: 1}, {PLACE: 10, NODE: 20}, levels=1
    )
    home = {POOL: 10}
    at_home = Tree(10, [[PLACE, POOL]], home=home)
    beside = Tree(20, [[NODE, POOL]], home=home)
    plain = Tree(30, [[PLAIN, POOL]], home=home)
    rows = [(0, 10, PLACE, 2.0), (0, 10, POOL, 3.0), (0, 20, NODE, 4.0), (0, 30, PLAIN, 5.0)]
    add_places([at_home, beside, plain], layout, fits_in(rows), {POOL: 3.0})
    assert at_home.places.of == {PLACE: layout.masks[PLACE], POOL: layout.masks[PLACE]}
    assert at_home.options == [[PLACE, POOL]]  # 5 fit in their place.
    assert beside.places.of == {NODE: layout.masks[NODE]}
    assert beside.options == [[POOL, NODE]]  # 3 and 4 fit there.
    assert not plain.places.of
