"""Values of the query parameters that select providers.

tests/conformance has the usual values and refusals, tests/differential odd ones: here are those that neither has.
"""

from collections.abc import Callable
from functools import partial

import pytest

from placement.api.query import (
    MAX_CONDITIONS,
    MAX_VALUES,
    parse_in_tree,
    parse_member_of,
    parse_required,
    parse_resources,
)
from placement.api.versions import MAXIMUM, Version
from placement.errors import Invalid

A = "aaaaaaaa-0000-4000-8000-000000000000"
B = "bbbbbbbb-0000-4000-8000-000000000000"
DASHLESS = "cccccccc000040008000000000000000"
BAD_UUID = "Invalid query string parameters: Expected 'member_of' parameter to contain valid UUID(s). Got: "
MANY_CLASSES = ",".join(f"CUSTOM_{number}:1" for number in range(MAX_CONDITIONS + 1))


def sets(*names: str) -> list[frozenset[str]]:
    """Return the sets of ``sets("A|B", "C")``: one of A and B, and C."""
    return [frozenset(alternatives.split("|")) for alternatives in names]


@pytest.mark.parametrize(
    ("value", "expected"), [("VCPU:2,VCPU:3", 3), ("VCPU:2 ", 2), ("VCPU: +2", 2), (f"VCPU:{2**63 - 1}", 2**63 - 1)]
)
def test_resources_are_amounts_by_class(value: str, expected: int) -> None:
    assert parse_resources(value) == {"VCPU": expected}


@pytest.mark.parametrize(
    ("parse", "version", "values", "required", "forbidden"),
    [
        (parse_required, (1, 17), ["A,B", "C"], sets("C"), {}),
        (parse_required, (1, 38), ["A,!B", "C,!D"], sets("C"), {"D"}),
        (parse_required, (1, 39), ["A,!B", "C,!D"], sets("A", "C"), {"B", "D"}),
        (parse_required, (1, 22), ["A , !!!B"], sets("A"), {"B"}),
        (parse_required, (1, 39), ["in:A,B", "in:B,C", "D,!E"], sets("A|B", "B|C", "D"), {"E"}),
        (parse_member_of, (1, 3), [DASHLESS], sets(DASHLESS), {}),
        (parse_member_of, (1, 3), [f"urn:uuid:{A}"], sets(A), {}),
        (parse_member_of, (1, 24), [A, f"in:{A},{B}"], sets(A, f"{A}|{B}"), {}),
        (parse_member_of, (1, 32), [f"!{A}", f"!in:{B},{DASHLESS}", B], sets(B), {A, B, DASHLESS}),
    ],
)
def test_traits_and_aggregates_are_sets_of_alternatives(parse, version, values, required, forbidden) -> None:
    assert parse(values, Version(*version)) == (required, frozenset(forbidden))


@pytest.mark.parametrize(
    ("parse", "arguments", "message"),
    [
        (parse_resources, ["VCPU:" + "9" * 5000], "expected positive integer amount."),
        (parse_resources, [f"VCPU:{10**20}"], f"requires amount <= {2**63 - 1}."),
        (parse_resources, [MANY_CLASSES], "too many values for 'resources'"),
        (parse_required, [["A,!"], Version(1, 22)], "Got an empty trait in: A,!"),
        (parse_required, [["in:A,"], MAXIMUM], "in:HW_CPU_X86_VMX,CUSTOM_MAGIC. Got an empty trait in: in:A,"),
        (parse_required, [["in:A,!B"], MAXIMUM], "does not support forbidden traits. Got: in:A,!B"),
        (parse_required, [["A"] * (MAX_CONDITIONS + 1), MAXIMUM], "too many values for 'required'"),
        (parse_required, [[",".join(["A"] * (MAX_VALUES + 1))], MAXIMUM], "too many values for 'required'"),
        (partial(parse_member_of, suffix="1"), [[A, B], Version(1, 21)], "Multiple member_of1 parameters are not"),
        (parse_member_of, [[f"in:{A},!{B}"], MAXIMUM], f"{BAD_UUID}!{B}"),
        (parse_member_of, [[f"!!{A}"], MAXIMUM], f"{BAD_UUID}!{A}"),
        (parse_member_of, [[A] * (MAX_CONDITIONS + 1), MAXIMUM], "too many values for 'member_of'"),
        (parse_in_tree, ["pony"], "Got: pony"),
    ],
)
def test_values_of_another_form_are_refused(parse: Callable[..., object], arguments: list, message: str) -> None:
    with pytest.raises(Invalid) as refused:
        parse(*arguments)
    assert message in refused.value.message


def test_a_tree_is_named_by_a_uuid() -> None:
    assert parse_in_tree(f"{A} ") == A


def test_as_many_aggregates_as_a_cloud_has_fit_one_query() -> None:
    """Clients list every aggregate of a tenant; 200 have been seen."""
    assert len(parse_member_of([A] * 200, MAXIMUM)[0]) == 200
