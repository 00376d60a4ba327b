"""Every link of the console works: everything reachable from the first page, with or without a prefix."""

from urllib.parse import urldefrag, urljoin

import pytest
from flask import Flask

from placement.cli.demo import CLOUD, uuid_of
from tests.ui.clouds import HELD
from tests.ui.visitor import Document, Visitor


@pytest.mark.each_database
@pytest.mark.parametrize("prefix", ["", "/placement"])
def test_every_page_that_links_lead_to_is_there(app: Flask, demo: None, prefix: str):
    visitor = Visitor(app, prefix=prefix)
    waiting, seen = [f"{prefix}/ui/"], set[str]()
    while waiting:
        address = waiting.pop()
        if address in seen:
            continue
        seen.add(address)
        answer = visitor.open(address.removeprefix(prefix))
        assert answer.status_code == 200, address
        if answer.mimetype == "text/html":
            waiting += [to for link in Document(answer.text).links() if (to := _target(address, link)) not in seen]
    assert all(address.startswith(f"{prefix}/ui/") for address in seen)
    providers = {f"{prefix}/ui/providers/{provider.uuid}" for provider in CLOUD}
    consumers = {f"{prefix}/ui/consumers/{uuid_of(name)}" for name in HELD}
    assert providers | consumers <= seen


def _target(address: str, link: str) -> str:
    return urldefrag(urljoin(address, link)).url
