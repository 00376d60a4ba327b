"""Which bodies are refused, with which sentence: each version of allocations, and each rule that a field can have."""

from typing import Any

import pytest

from placement.api import inventories, marks
from placement.api import resource_providers as providers
from placement.api.allocations import POST, PUT
from placement.api.fields import Field, load
from placement.api.versions import MAXIMUM, Version
from placement.errors import Invalid
from tests.claims import OWNER, entry, listed_entry, old_entry

NOBODY = "11111111-2222-3333-4444-555555555555"
SHARES = {NOBODY: {"VCPU": 1}}
PUT_FAULTS = [
    ("1.0", [], "is not of type 'object'"),
    ("1.0", {"allocations": {}}, "{} is not of type 'array'"),
    ("1.7", listed_entry(SHARES, **OWNER), "was unexpected"),
    ("1.8", listed_entry(SHARES, project_id="p"), "'user_id' is a required property"),
    ("1.8", listed_entry(SHARES, project_id="p" * 256, user_id="u"), "Failed validating 'maxLength'"),
    ("1.12", listed_entry(SHARES, **OWNER), "is not of type 'object'"),
    ("1.12", old_entry({"pony": {"VCPU": 1}}), "does not match any of the regexes"),
    ("1.12", old_entry({NOBODY: {"VCPU": 0}}), "0 is less than the minimum of 1"),
    ("1.12", old_entry({NOBODY: {"VCPU": 1.5}}), "1.5 is not of type 'integer'"),
    ("1.12", old_entry({NOBODY: {"VCPU": True}}), "True is not of type 'integer'"),
    ("1.12", old_entry({NOBODY: {"VCPU": "1"}}), "'1' is not of type 'integer'"),
    ("1.12", old_entry({NOBODY: {"VCPU": 10**20}}), "Failed validating"),
    ("1.28", old_entry(SHARES, consumer_generation="1"), "is not of type 'integer', 'null'"),
    ("1.33", old_entry(SHARES, consumer_generation=1, mappings={"": [NOBODY]}), "'mappings' was unexpected"),
    ("1.34", old_entry(SHARES, consumer_generation=1, mappings={"1": ["pony"]}), "Failed validating 'format'"),
    ("1.38", entry(SHARES, consumer_type="instance"), "'instance' does not match '^[A-Z0-9_]+$'"),
    ("1.38", entry(SHARES, consumer_type=None), "None is not of type 'string'"),
]
POST_FAULTS = [
    ("1.13", {}, "does not have enough properties"),
    ("1.13", {"pony": old_entry({})}, "does not match any of the regexes"),
    ("1.38", {NOBODY: old_entry({}, consumer_generation=1)}, "'consumer_type' is a required property"),
]


RULES: list[tuple[Field, Any, str]] = [
    (providers.NEW.at(MAXIMUM), {"name": "a\0b"}, "contains a NUL character"),
    (providers.NEW.at(MAXIMUM), {"name": "n" * 201}, "is too long. Failed validating 'maxLength'"),
    (providers.NEW.at(MAXIMUM), {"name": "a", "uuid": None}, "None is not of type 'string'"),
    (providers.NEW.at(MAXIMUM), {"name": "a", "parent_provider_uuid": 1}, "1 is not of type 'string', 'null'"),
    (providers.NEW.at(Version(1, 13)), {"name": "a", "parent_provider_uuid": None}, "'parent_provider_uuid' was unexp"),
    (marks.BARE_LIST, {}, "{} is not of type 'array'. Failed validating 'type' in schema"),
    (marks.BARE_LIST, ["pony"], "'pony' is not a 'uuid'. Failed validating 'format' in schema['items']"),
    (marks.BARE_LIST, [NOBODY, NOBODY], "has non-unique elements"),
    (marks.AGGREGATES, {"aggregates": None}, "'resource_provider_generation' is a required property"),
    (marks.TRAIT_SET, {"traits": [""], "resource_provider_generation": 0}, "'' should be non-empty"),
    (inventories.CHANGED, {"total": 0, "resource_provider_generation": 0}, "0 is less than the minimum of 1"),
    (inventories.CHANGED, {"total": 2**31, "resource_provider_generation": 0}, "is greater than the maximum of 2147"),
    (inventories.NEW, {"total": 1, "resource_class": "VCPU", "allocation_ratio": "1"}, "'1' is not of type 'number'"),
    (inventories.NEW, {"total": 1, "resource_class": "VCPU", "allocation_ratio": 3.5e38}, "maximum of 3.40282e+38"),
    (inventories.NEW, {"total": 1, "resource_class": "VCPU", "pony": 1, "unicorn": 1}, "'pony' was unexpected"),
]


def version(text: str) -> Version:
    major, minor = text.split(".")
    return Version(int(major), int(minor))


FAULTS = [
    *[(PUT.at(version(at)), body, fragment) for at, body, fragment in PUT_FAULTS],
    *[(POST.at(version(at)), body, fragment) for at, body, fragment in POST_FAULTS],
    *RULES,
]


@pytest.mark.parametrize(("field", "body", "fragment"), FAULTS)
def test_a_body_that_breaks_a_rule_is_refused(field: Field, body: Any, fragment: str) -> None:
    with pytest.raises(Invalid, match="JSON does not validate") as refused:
        load(field, body)
    assert fragment in refused.value.message


def test_a_whole_number_may_be_written_with_a_point() -> None:
    body = load(PUT.at(version("1.12")), old_entry({NOBODY: {"VCPU": 2.0}}))
    assert body["allocations"] == {NOBODY: {"resources": {"VCPU": 2}}}
