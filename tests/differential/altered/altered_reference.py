"""The reference, altered on purpose: a WSGI application served in the reference's environment.

The comparison has to find each alteration; ALTERATION names the one to make.
"""

import json
import os
from collections.abc import Callable, Iterable
from typing import Any

Alteration = Callable[[Any, str], Any]
"""(document of an answer, path and query) -> the document to answer instead"""


def drop_a_candidate(document: Any, target: str) -> Any:
    """Omit the last of three candidates or more."""
    if len(document.get("allocation_requests", ())) >= 3:
        document["allocation_requests"].pop()
    return document


def forget_reserved(document: Any, target: str) -> Any:
    """Show inventories without their reserved amount."""
    for record in document.get("inventories", {}).values():
        record["reserved"] = 0
    return document


def change_a_code(document: Any, target: str) -> Any:
    """Give a lost race another error code."""
    for error in document.get("errors", ()):
        if error.get("code") == "placement.concurrent_update":
            error["code"] = "placement.undefined_code"
    return document


def ignore_a_limit(document: Any, target: str) -> Any:
    """Return one candidate too few if there is a limit."""
    if "limit=2" in target:
        del document.get("allocation_requests", [])[1:]
    return document


ALTERATIONS: dict[str, Alteration] = {
    function.__name__: function
    for function in (
        drop_a_candidate,
        forget_reserved,
        change_a_code,
        ignore_a_limit,
    )
}


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Answer like the reference, then alter the answer."""
    # The reference's module: this function runs in its environment, while tests import the file in their own.
    from placement.wsgi.api import application as original  # noqa: PLC0415

    started: list[Any] = []
    body = b"".join(original(environ, lambda *arguments: started.extend(arguments)))
    status, headers = started[:2]
    try:
        document = json.loads(body)
    except ValueError:
        document = None
    if isinstance(document, dict):
        target = f"{environ['PATH_INFO']}?{environ.get('QUERY_STRING', '')}"
        body = json.dumps(ALTERATIONS[os.environ["ALTERATION"]](document, target)).encode()
        headers = [(name, value) for name, value in headers if name.lower() != "content-length"]
        headers.append(("content-length", str(len(body))))
    start_response(status, headers)
    return [body]
