"""Conditions on the roots of trees, and on trees as a whole, as SQL."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement

from placement.store.search.any_of import (
    NO_SETS,
    SetsShape,
    has_one_of_each,
    has_trait,
    is_member,
    tree_has_one_of_each,
)
from placement.store.search.ranges import Scope, within


@dataclass(frozen=True, slots=True)
class RootShape:
    """The shape of the conditions on a tree's root and on the tree as a whole."""

    required: SetsShape
    forbidden: bool
    forbidden_aggregates: bool
    tree_traits: SetsShape


def root_conditions(root: RootShape, root_id: Any, *, scope: Scope) -> list[ColumnElement[bool]]:
    """Return the conditions on a tree, given the column with its root id."""
    few = scope is Scope.LISTED
    conditions: list[ColumnElement[bool]] = []
    if root.required != NO_SETS:
        conditions.append(has_one_of_each(root_id, root.required, "root_required", few=few))
    if root.forbidden:
        conditions.append(~has_trait(root_id, "root_forbidden", few=few))
    if root.forbidden_aggregates:
        conditions.append(~is_member(root_id, "root_aggregates", few=few))
    if root.tree_traits != NO_SETS:
        conditions.append(tree_has_one_of_each(root_id, root.tree_traits, "tree_traits", few=few))
    return conditions + within(root_id, scope)
