"""Fair shares: the tree of queues and projects, what each holds, and what its weight entitles it to."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from flask import Response

from placement.allocators import natural_key
from placement.allocators.fair_share.state import NodeShare
from placement.api.call import Call
from placement.api.planner.fair_share import RULE, visible_path
from placement.domain.quantities import amounts_in_words, class_held_most, differences_in_words
from placement.errors import NotFound
from placement.services.fair_share.shares import Shares, all_shares
from placement.ui.filters import percent
from placement.ui.page import Page, csv_file, paging_of, show, wants_csv

CHILDREN = 50
"""Children of the opened branch on one page."""

MAX_ROWS = 150
"""Rows of the whole table; beyond that, lower branches are shown closed."""

MAX_OF_A_BRANCH = 20
"""Children shown of each branch below the opened one."""


@dataclass(frozen=True, slots=True)
class ShareRow:
    """A node of the tree below the opened branch.

    ``held_most`` is the class of which it holds the largest fraction, ``entitled`` how much of it is its own, ``fair``
    the same as a fraction of the cloud (None for the root); ``over`` and ``gives`` are in words; it has ``parts``
    children.
    """

    node: NodeShare
    name: str
    depth: int
    held_most: str
    entitled: float
    fair: float | None
    over: Sequence[str]
    gives: Sequence[str]
    parts: int
    shown: int

    @property
    def held_in_words(self) -> str:
        """The fraction of the cloud that it holds."""
        return "over 100 %" if self.node.held > 1 else percent(self.node.held, 1)


@dataclass(frozen=True, slots=True)
class Branches:
    """A tree of shares to be shown in part."""

    shares: Shares
    nodes: Mapping[str, NodeShare]
    parts: Mapping[str, Sequence[NodeShare]]

    def name(self, path: str) -> str:
        """Return a node's name among its siblings. Leaves go by their member, whose name may contain anything."""
        return self.shares.members[path] if self.nodes[path].is_leaf else path.rpartition("/")[2]

    def rows(self, opened: str, first: int) -> list[ShareRow]:
        """Return the opened branch with a page of its children, and as many descendants as there is room for."""
        shown = {opened: self.parts[opened][first : first + CHILDREN]}
        room, level = MAX_ROWS - len(shown[opened]), shown[opened]
        while level and room > 0:
            following: list[NodeShare] = []
            for node in level:
                children = self.parts[node.path][: min(MAX_OF_A_BRANCH, room)]
                shown[node.path] = children
                room -= len(children)
                following += children
            level = following
        return list(self._below(opened, shown, 0))

    def _below(self, path: str, shown: Mapping[str, Sequence[NodeShare]], depth: int) -> Iterator[ShareRow]:
        node, children = self.nodes[path], shown.get(path, ())
        held_most = class_held_most(node.usage, self.shares.totals)
        entitled = self.shares.entitled[path].get(held_most, 0)
        under = {name: -amount for name, amount in self.shares.under(node).items()}
        yield ShareRow(
            node,
            self.name(path),
            depth,
            held_most,
            entitled,
            fair=entitled / total if "/" in path and (total := self.shares.totals.get(held_most)) else None,
            over=differences_in_words(self.shares.over(node) | under),
            gives=amounts_in_words(self.shares.gives(node)) if "/" in path else (),
            parts=len(self.parts[path]),
            shown=len(children),
        )
        for part in children:
            yield from self._below(part.path, shown, depth + 1)


def fair_shares(call: Call) -> Response:
    """Show the branch named by ``at``, or the whole tree; restricted callers see the path to their own project."""
    own = visible_path(call)
    paging = paging_of(call.request, size=CHILDREN)
    tree = _branches(all_shares(call.database, call.server.usage_cache), own)
    opened = call.request.args.get("at") or next(iter(tree.nodes))
    if opened not in tree.nodes:
        raise NotFound(f"There is no queue or project {opened}.")
    if wants_csv(call.request):
        names = call.server.settings.planner.names.projects
        return csv_file("fair-shares", [_csv_row(tree, path, names) for path in tree.nodes])
    rows, steps = tree.rows(opened, paging.first), opened.split("/")
    above = ["/".join(steps[:end]) for end in range(1, len(steps))]
    return show(
        "shares.html",
        shares=tree.shares,
        classes=call.server.settings.planner.fair_share.classes,
        partition=call.server.settings.planner.fair_share.partition,
        rows=rows,
        above=[(path, tree.name(path)) for path in above],
        paging=paging,
        has_more=paging.first + CHILDREN < rows[0].parts,
        sees_all=own is None,
        of_projects=call.server.settings.planner.fair_share.leaves == "project",
    )


def _csv_row(tree: Branches, path: str, names: Mapping[str, str]) -> dict[str, object]:
    node, entitled, name = tree.nodes[path], tree.shares.entitled[path], tree.name(path)
    amounts = {
        f"{class_name} {key}": values.get(class_name, 0)
        for class_name in tree.shares.totals
        for key, values in (("held", node.usage), ("entitled", entitled))
    }
    standing = {"weight": node.weight, "share": node.weighted_share, "blocked": node.is_blocked}
    return {"path": path, "name": names.get(name, name), **standing, **amounts}


def _branches(shares: Shares, own: str | None) -> Branches:
    """Return the tree; with ``own``, only the nodes on the path to it."""
    nodes = {node.path: node for node in shares.nodes if own is None or f"{own}/".startswith(f"{node.path}/")}
    parts: dict[str, list[NodeShare]] = defaultdict(list)
    for path, node in nodes.items():
        if "/" in path:
            parts[path.rpartition("/")[0]].append(node)
    for siblings in parts.values():
        siblings.sort(key=lambda node: (node.is_blocked, node.weighted_share, natural_key(node.path)))
    return Branches(shares, nodes, parts)


PAGES = (
    # As in the API, two rules decide how much a caller may see, so the view checks policy itself.
    Page(
        path="/fair-share",
        view=fair_shares,
        endpoint="shares",
        title="Fair shares",
        rules=(),
        any_of=(f"{RULE}:show_all", f"{RULE}:show"),
    ),
)
