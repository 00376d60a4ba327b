"""The places of providers in trees where some providers share."""

from placement.candidates.layout import laid_out
from placement.domain.places import Layout
from placement.domain.tree import PlaceFacts, Tree, TreesRead

PLACE, POOL, HOST, NODE, PLAIN = 11, 12, 20, 21, 30


def test_who_shares_lies_in_its_place_at_home_and_in_none_elsewhere():
    """A pool in a place of its own tree (10) serves a host with a NUMA node and one without places."""
    parents = {10: None, PLACE: 10, POOL: PLACE, HOST: None, NODE: HOST}
    bits, root_of = {PLACE: 1, NODE: 1}, {PLACE: 10, NODE: 20}
    sharing = {POOL: 10}
    read = TreesRead(
        [
            Tree(10, [[PLACE, POOL]], root_of=sharing),
            Tree(20, [[NODE, POOL]], root_of=sharing),
            Tree(30, [[PLAIN, POOL]], root_of=sharing),
        ],
        PlaceFacts(
            parents,
            bits,
            root_of,
            levels=1,
            fit_counts={PLACE: 2.0, POOL: 3.0, NODE: 4.0, PLAIN: 5.0},
            shared_fit_counts={POOL: 3.0},
        ),
    )
    inside, beside, plain = laid_out(read)
    masks = Layout(parents, bits, root_of, levels=1).masks
    assert inside.places.of == {PLACE: masks[PLACE], POOL: masks[PLACE]}
    assert inside.options == [[PLACE, POOL]]  # 5 fit in their place.
    assert beside.places.of == {NODE: masks[NODE]}
    assert beside.options == [[POOL, NODE]]  # 3 and 4 fit.
    assert not plain.places.of


def test_where_no_place_matters_trees_stay_as_they_were_read():
    tree = Tree(10, [[12, 11]])
    assert laid_out(TreesRead([tree])) == [tree]
    assert tree.options == [[12, 11]]
