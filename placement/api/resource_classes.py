"""/resource_classes: the standard resource classes and the operator's CUSTOM_ ones."""

from typing import Any

from flask import Response

from placement.api.call import Call
from placement.api.fields import Object, load, text
from placement.api.routing import Route
from placement.domain.names import CUSTOM_PATTERN
from placement.services import names as service
from placement.store.resource_classes import ResourceClass

RULE = "placement:resource_classes:"


NEW_CLASS = Object({"name": text(pattern=CUSTOM_PATTERN, longest=255)})


def _path(name: str) -> str:
    return f"/resource_classes/{name}"


def _shown(call: Call, resource_class: ResourceClass) -> dict[str, Any]:
    name = resource_class.name
    return {"name": name, "links": [{"rel": "self", "href": call.link(_path(name))}]}


def list_classes(call: Call) -> Response:
    """List all resource classes, the standard ones first."""
    classes = service.resource_classes(call.database)
    newest = max((class_.modified for class_ in classes if class_.modified), default=None)
    return call.json({"resource_classes": [_shown(call, class_) for class_ in classes]}, last_modified=newest)


def show(call: Call, name: str) -> Response:
    """Return a resource class."""
    class_ = service.resource_class(call.database, name)
    return call.json(_shown(call, class_), last_modified=class_.modified)


def create(call: Call) -> Response:
    """Create a custom resource class."""
    name = call.body(NEW_CLASS)["name"]
    service.create_class(call.database, name)
    return call.empty(201, location=_path(name))


def rename(call: Call, name: str) -> Response:
    """Rename a custom resource class (1.2 to 1.6)."""
    renamed = service.rename_class(call.database, name, call.body(NEW_CLASS)["name"])
    return call.json(_shown(call, renamed))


def ensure(call: Call, name: str) -> Response:
    """Create a custom resource class unless it exists (from 1.7); takes no body."""
    load(NEW_CLASS, {"name": name})
    created = service.ensure_class(call.database, name)
    return call.empty(201 if created else 204, location=_path(name))


def delete(call: Call, name: str) -> Response:
    """Delete a custom resource class that no inventory uses."""
    service.delete_class(call.database, name)
    return call.empty()


ONE_CLASS = "/resource_classes/<name>"
ROUTES = (
    Route("GET", "/resource_classes", list_classes, rule=RULE + "list", since=(1, 2), answers_json=True),
    Route("POST", "/resource_classes", create, rule=RULE + "create", since=(1, 2), body=NEW_CLASS),
    Route("GET", ONE_CLASS, show, rule=RULE + "show", since=(1, 2), answers_json=True),
    Route("PUT", ONE_CLASS, rename, rule=RULE + "update", since=(1, 2), until=(1, 6), body=NEW_CLASS),
    Route("PUT", ONE_CLASS, ensure, rule=RULE + "update", since=(1, 7)),
    Route("DELETE", ONE_CLASS, delete, rule=RULE + "delete", since=(1, 2)),
)
