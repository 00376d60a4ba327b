"""Values of the query parameters that select providers."""

from collections.abc import Callable

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
BAD_FORM = "Badly formed resources parameter. Expected resources query string parameter in form: "


def refusal(parse: Callable[..., object], *values: object) -> str:
    with pytest.raises(Invalid) as refused:
        parse(*values)
    return refused.value.message


def sets(*names: str) -> list[frozenset[str]]:
    """Return the sets of ``sets("A|B", "C")``: one of A and B, and C."""
    return [frozenset(alternatives.split("|")) for alternatives in names]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("VCPU:2", {"VCPU": 2}),
        ("VCPU:2,MEMORY_MB:1024", {"VCPU": 2, "MEMORY_MB": 1024}),
        ("VCPU:2,VCPU:3", {"VCPU": 3}),
        ("VCPU:2 ", {"VCPU": 2}),
        ("VCPU: +2", {"VCPU": 2}),
        (f"VCPU:{2**63 - 1}", {"VCPU": 2**63 - 1}),
    ],
)
def test_resources_are_amounts_by_class(value: str, expected: dict[str, int]) -> None:
    assert parse_resources(value) == expected


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("", BAD_FORM + "?resources=VCPU:2,MEMORY_MB:1024. Got: empty string."),
        ("VCPU", "Got: VCPU."),
        ("VCPU:1:2", "Got: VCPU:1:2."),
        ("VCPU:", "Requested resource VCPU expected positive integer amount. Got: ."),
        ("VCPU:1.5", "Requested resource VCPU expected positive integer amount. Got: 1.5."),
        ("VCPU:" + "9" * 5000, "expected positive integer amount."),
        ("VCPU:0", "Requested resource VCPU requires amount >= 1. Got: 0."),
        (f"VCPU:{10**20}", f"requires amount <= {2**63 - 1}."),
        (",".join(f"CUSTOM_{number}:1" for number in range(MAX_CONDITIONS + 1)), "too many values for 'resources'"),
    ],
)
def test_resources_of_another_form_are_refused(value: str, message: str) -> None:
    assert message in refusal(parse_resources, value)


@pytest.mark.parametrize(
    ("version", "values", "required", "forbidden"),
    [
        ((1, 17), ["A"], sets("A"), ""),
        ((1, 17), ["A,B", "C"], sets("C"), ""),
        ((1, 38), ["A,!B", "C,!D"], sets("C"), "D"),
        ((1, 39), ["A,!B", "C,!D"], sets("A", "C"), "B D"),
        ((1, 22), ["A,!B"], sets("A"), "B"),
        ((1, 22), ["!B"], [], "B"),
        ((1, 22), ["!!!B"], [], "B"),
        ((1, 22), ["A , B "], sets("A", "B"), ""),
        ((1, 39), ["in:A,B"], sets("A|B"), ""),
        ((1, 39), ["in:A,B", "in:B,C", "D,!E"], sets("A|B", "B|C", "D"), "E"),
        ((1, 39), ["in:A"], sets("A"), ""),
        ((1, 39), [], [], ""),
    ],
)
def test_required_traits_are_sets_of_alternatives(
    version: tuple[int, int], values: list[str], required: list[frozenset[str]], forbidden: str
) -> None:
    assert parse_required(values, Version(*version)) == (required, frozenset(forbidden.split()))


FORM = "Invalid query string parameters: Expected 'required' parameter value of the form: "


@pytest.mark.parametrize(
    ("version", "values", "message"),
    [
        ((1, 21), ["!A"], FORM + "HW_CPU_X86_VMX,CUSTOM_MAGIC. Got: !A"),
        ((1, 22), ["A,!"], "Got an empty trait in: A,!"),
        ((1, 38), ["in:A"], "The format 'in:HW_CPU_X86_VMX,CUSTOM_MAGIC' only supported since microversion 1.39."),
        ((1, 39), ["in:A,"], FORM + "in:HW_CPU_X86_VMX,CUSTOM_MAGIC. Got an empty trait in: in:A,"),
        ((1, 39), ["in:A,!B"], "does not support forbidden traits. Got: in:A,!B"),
        ((1, 39), ["A"] * (MAX_CONDITIONS + 1), "too many values for 'required'"),
        ((1, 39), [",".join(["A"] * (MAX_VALUES + 1))], "too many values for 'required'"),
    ],
)
def test_required_traits_of_another_form_are_refused(version: tuple[int, int], values: list[str], message: str) -> None:
    assert message in refusal(parse_required, values, Version(*version))


@pytest.mark.parametrize(
    ("version", "values", "required", "forbidden"),
    [
        ((1, 3), [A], sets(A), frozenset()),
        ((1, 3), [f"in:{A},{B}"], sets(f"{A}|{B}"), frozenset()),
        ((1, 3), [f"in:{A}"], sets(A), frozenset()),
        ((1, 3), [DASHLESS], sets(DASHLESS), frozenset()),
        ((1, 3), [f"urn:uuid:{A}"], sets(A), frozenset()),
        ((1, 24), [A, f"in:{A},{B}"], sets(A, f"{A}|{B}"), frozenset()),
        ((1, 32), [f"!{A}", f"!in:{B},{DASHLESS}", B], sets(B), frozenset({A, B, DASHLESS})),
        ((1, 39), [], [], frozenset()),
    ],
)
def test_aggregates_are_sets_of_alternatives(
    version: tuple[int, int], values: list[str], required: list[frozenset[str]], forbidden: frozenset[str]
) -> None:
    assert parse_member_of(values, Version(*version)) == (required, forbidden)


@pytest.mark.parametrize(
    ("version", "values", "message"),
    [
        ((1, 23), [A, B], "Multiple member_of parameters are not supported"),
        ((1, 31), [f"!{A}"], "Forbidden member_of parameters are not supported in the specified microversion"),
        ((1, 39), [f"{A},{B}"], "must be prefixed with the 'in:' or '!in:' keyword using the valid microversion."),
        ((1, 39), ["not a uuid"], BAD_UUID + "not a uuid"),
        ((1, 39), [f"in:{A},!{B}"], f"{BAD_UUID}!{B}"),
        ((1, 39), [f"!!{A}"], f"{BAD_UUID}!{A}"),
        ((1, 39), [A] * (MAX_CONDITIONS + 1), "too many values for 'member_of'"),
    ],
)
def test_aggregates_of_another_form_are_refused(version: tuple[int, int], values: list[str], message: str) -> None:
    assert message in refusal(parse_member_of, values, Version(*version))


def test_messages_about_aggregates_name_the_suffix_of_the_key() -> None:
    with pytest.raises(Invalid, match="Multiple member_of1 parameters"):
        parse_member_of([A, B], Version(1, 21), suffix="1")


def test_as_many_aggregates_as_a_cloud_has_fit_one_query() -> None:
    """Clients list every aggregate of a tenant; 200 have been seen."""
    assert len(parse_member_of([A] * 200, MAXIMUM)[0]) == 200


def test_a_tree_is_named_by_a_uuid() -> None:
    assert parse_in_tree(f"{A} ") == A
    assert "Got: pony" in refusal(parse_in_tree, "pony")
