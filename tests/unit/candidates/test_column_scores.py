"""Scores worked out for many trees at once are those of each tree, to the last bit."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from placement.allocators.ranking_profile import NodeScorer, OwnPart
from placement.candidates.ranking import ColumnScores
from tests.unit.allocators.test_strategy_fit_properties import CLASSES, parts, profiles

amounts = st.integers(0, 10) | st.integers(0, 2**40)


@given(profiles, parts(), st.lists(st.tuples(amounts, amounts), min_size=len(CLASSES) * 5), st.booleans())
def test_columns_score_as_single_trees_do(profile, part, drawn, is_alone) -> None:
    requested, own = part
    scorer = NodeScorer(profile, requested, CLASSES, own=None if is_alone else OwnPart.exactly(own))
    number = len(drawn) // max(1, len(scorer.classes))
    rows = [drawn[tree * len(scorer.classes) : (tree + 1) * len(scorer.classes)] for tree in range(number)]
    capacity, used = ([[amount[side] for amount in row] for row in rows] for side in (0, 1))
    columns = [[np.array(column, dtype=np.int64) for column in zip(*side, strict=True)] for side in (capacity, used)]
    scores, trees = ColumnScores(scorer, *columns, number=number), [*zip(capacity, used, strict=True)]
    for name in ("score", "fit", "sra", "keeps_proportion"):
        assert getattr(scores, name)().tolist() == [getattr(scorer, name)(*tree) for tree in trees], name
