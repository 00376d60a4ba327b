"""The reference, unchanged except for work that it repeats for each request although nothing has changed.

It validates the JSON schema of each request against the meta-schema, which takes a third of its time, and its garbage
collector looks for cycles. No answer depends on either.
"""

import gc
from collections.abc import Callable
from typing import Any

from jsonschema import validators

from placement.wsgi.api import application as original

gc.set_threshold(50_000, 20, 100)


def once_for_each(check: Callable[..., None]) -> Callable[..., None]:
    """Return a check that examines each object only once."""
    checked: dict[int, Any] = {}

    def check_schema(schema: Any, *args: Any, **options: Any) -> None:
        if id(schema) not in checked:
            check(schema, *args, **options)
            checked[id(schema)] = schema  # Kept, so that no other object has its id.

    return check_schema


for validator in (validators.Draft7Validator, validators.Draft202012Validator):
    validator.check_schema = staticmethod(once_for_each(validator.check_schema))  # type: ignore[method-assign]

application = original
