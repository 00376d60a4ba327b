"""The pages that the browser visits: one of each kind, on the demo cloud."""

import re
from urllib.parse import urlencode

from placement.cli.demo import CONSUMER, REQUEST, uuid_of
from placement.ui.blueprint import PAGES

FOUND = urlencode(REQUEST, safe=":,")
EMPTY = (
    "resources_NUMA=VCPU:8&required_NUMA=STORAGE_DISK_SSD&resources_GPU=PGPU:1&group_policy=none"
    "&same_subtree=_NUMA,_GPU"
)


def trying(query: str) -> str:
    return f"/request?{urlencode({'query': query})}"


LOOKED_AT = {
    "overview": "/",
    "map": "/map",
    "map, asked": f"/map?{urlencode({'query': FOUND, 'project': 'vision', 'host': uuid_of('compute1')[:8]})}",
    "map, compared": f"/map?{urlencode({'query': 'resources=VCPU:1', 'profile': ['spread', 'pack']}, doseq=True)}",
    "map, a host": f"/map/host?{urlencode({'query': EMPTY, 'host': uuid_of('compute1')})}",
    "providers": "/providers",
    "providers, searched": "/providers?q=numa&resources=VCPU:1",
    "root": f"/providers/{uuid_of('compute1')}",
    "sharing": f"/providers/{uuid_of('storage1')}",
    "maintenance": f"/providers/{uuid_of('compute1')}/maintenance",
    "consumers": "/consumers",
    "consumer": f"/consumers/{CONSUMER}",
    "form": "/request",
    "candidates": trying(FOUND),
    "waterfall": trying(EMPTY),
    "shares": "/fair-share",
    "project": "/project?id=vision",
    "search": "/search",
    "branch": "/fair-share?at=cloud/research",
}
"""A name -> a path below /ui."""


def forgotten() -> set[str]:
    """Return the pages that are missing from these."""
    patterns = {page.path: re.sub("<[^>]+>", "[^/]+", page.path) for page in PAGES}
    paths = [path.partition("?")[0] for path in LOOKED_AT.values()]
    return {page for page, pattern in patterns.items() if not any(re.fullmatch(pattern, path) for path in paths)}
