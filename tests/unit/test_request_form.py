"""The form for a request: from its fields to a query string, and back."""

import pytest

from placement.api.query import Query
from placement.ui.request_form import FormFields, form_fields, query_string


def fields_of(form: FormFields) -> dict[str, list[str]]:
    """Return what a browser sends for an unchanged form."""
    groups = [form.unsuffixed, *form.groups]
    names = ("suffix", "resources", "required", "member_of", "in_tree")
    sent = {name: [getattr(group, name) for group in groups] for name in names}
    for name in ("root_required", "same_subtree", "group_policy", "limit"):
        sent[name] = [getattr(form, name)]
    return sent


@pytest.mark.parametrize(
    "query",
    [
        "resources=VCPU:2,MEMORY_MB:512",
        "resources=VCPU:2&required=HW_NUMA_ROOT,!CUSTOM_OLD&required=in:CUSTOM_A,CUSTOM_B",
        "resources_GPU=PGPU:1&required_GPU=CUSTOM_A100&resources_N=VCPU:2&same_subtree=_GPU,_N&group_policy=isolate",
        "resources1=VCPU:1&member_of1=in:7f0b1f8e-3c5d-4c0e-9f1a-2f6f6e2f7a02,!8&in_tree1=9&limit=5&root_required=A",
    ],
)
def test_a_form_that_a_query_filled_in_and_nobody_changed_stands_for_that_query(query: str):
    form = form_fields(Query.parse(query.encode()))
    assert sorted(Query.parse(query_string(fields_of(form)).encode()).pairs) == sorted(
        Query.parse(query.encode()).pairs
    )


def test_blanks_and_equals_signs_are_what_people_write():
    fields = {
        "suffix": ["", ""],
        "resources": ["VCPU = 2, MEMORY_MB=512", "PGPU:1"],
        "required": [" A, !B  in:C,D", ""],
    }
    assert query_string(fields) == "resources=VCPU:2,MEMORY_MB:512&required=A,!B&required=in:C,D&resources_1=PGPU:1"


def test_a_field_cannot_smuggle_in_another_parameter():
    query = query_string({"suffix": [""], "resources": ["VCPU:1&limit=5"], "in_tree": ["x&required=A"]})
    assert Query.parse(query.encode()).pairs == [("resources", "VCPU:1&limit:5"), ("in_tree", "x&required=A")]
