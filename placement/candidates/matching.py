"""Whether every row can have a column of its own: bipartite matching where columns have a number of places.

Used to look ahead: nine groups that need a device each fail at once on eight devices, not after 8! tries. Augmenting
paths (Kuhn), O(rows x edges).
"""

from collections.abc import Callable, Sequence


def can_match(rows: Sequence[Sequence[int]], places: Callable[[int], int]) -> bool:
    """Tell whether each row can be given one of its columns with no column used more often than it has places.

    Args:
        rows: the columns each row may have.
        places: how many rows a column can take.

    >>> can_match([[1, 2], [1]], places=lambda column: 1)
    True
    >>> can_match([[1], [1]], places=lambda column: 1)
    False
    """
    taken: dict[int, list[int]] = {}

    def augment(row: int, visited: set[int]) -> bool:
        """Give a row a column, moving other rows elsewhere where that is needed."""
        for column in rows[row]:
            if column in visited:
                continue
            visited.add(column)
            holders = taken.setdefault(column, [])
            if len(holders) < places(column):
                holders.append(row)
                return True
            for index, holder in enumerate(holders):
                if augment(holder, visited):
                    # The holder found another column; its old place is free now.
                    holders[index] = row
                    return True
        return False

    return all(augment(row, set()) for row in range(len(rows)))


def always_matches(option_counts: Sequence[int], *, taken: int) -> bool:
    """Tell cheaply that rows can be matched one by one whatever ``taken`` columns are gone already.

    Sufficient, not necessary: with the rows sorted, each still has a free column when its turn comes.
    """
    return all(count > taken + turn for turn, count in enumerate(sorted(option_counts)))
