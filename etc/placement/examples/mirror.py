#!/usr/bin/env python3
"""Mirror a cloud into memory by the journal, and hold the mirror against the server.

    python mirror.py --url http://127.0.0.1:8778 --token admin

reads everything once, then only what changed. Needs nothing but Python; docs/journal.md tells what is guaranteed.
"""

import argparse
import json
import time
import urllib.error
import urllib.request
from collections import Counter


def snapshot(get):
    """Return all providers by uuid, and the cursor of this moment; ``get`` returns (document, headers) of a path."""
    document, headers = get("/planner/v1/inventory")
    mirror = {one["uuid"]: one | {"usages": Counter(one["usages"])} for one in document["providers"]}
    return mirror, headers["x-placement-journal"]


def follow(get, mirror, cursor):
    """Apply what came after a cursor to the mirror, and return the next cursor."""
    while True:
        document, _ = get(f"/planner/v1/journal?limit=1000&after={cursor}")
        cursor = document["cursor"]
        for row in document["entries"]:
            apply(mirror, row)
        if not document["entries"]:
            return cursor


def apply(mirror, row):
    """Apply one row of the journal."""
    kind, is_gone, uuid = row["kind"], row["action"] == "deleted", row.get("provider_uuid")
    if kind == "provider" and row["action"] == "created":
        mirror[uuid] = {"uuid": uuid, "inventories": {}, "usages": Counter(), "traits": [], "aggregates": []}
    if kind == "provider" and is_gone:
        del mirror[uuid]
    elif kind in ("provider", "generation"):
        mirror[uuid] |= row.get("new", {}) | {"generation": row["generation"]}
    elif kind == "inventory" and is_gone:
        del mirror[uuid]["inventories"][row["resource_class"]]
    elif kind == "inventory":
        mirror[uuid]["inventories"][row["resource_class"]] = row["new"]
    elif kind == "allocation":
        mirror[uuid]["usages"][row["resource_class"]] += row.get("new_amount", 0) - row.get("old_amount", 0)
    elif kind in ("trait", "aggregate"):
        names = set(mirror[uuid][f"{kind}s"])
        mirror[uuid][f"{kind}s"] = sorted(names - {row["name"]} if is_gone else names | {row["name"]})


def same(mirror, other):
    """Tell whether two mirrors show the same; what is used counts where there is inventory of it."""
    return {uuid: _shown(one) for uuid, one in mirror.items()} == {uuid: _shown(one) for uuid, one in other.items()}


def _shown(one):
    return one | {"usages": {name: one["usages"][name] for name in one["inventories"]}}


def main():
    """Mirror until interrupted; begin anew where the journal no longer holds what comes next."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:8778")
    parser.add_argument("--token", default="admin")
    chosen = parser.parse_args()

    def get(path):
        request = urllib.request.Request(chosen.url + path, headers={"X-Auth-Token": chosen.token})  # noqa: S310
        with urllib.request.urlopen(request) as answer:  # noqa: S310
            return json.load(answer), answer.headers

    mirror, cursor = snapshot(get)
    while True:
        try:
            cursor = follow(get, mirror, cursor)
            fresh, _ = snapshot(get)  # somebody may have changed something just before
            verdict = "as the server says" if same(mirror, fresh) else "the server is ahead"
            print(f"{len(mirror)} providers, {verdict}", flush=True)
        except urllib.error.HTTPError as error:
            if error.code != 410:
                raise
            mirror, cursor = snapshot(get)
        time.sleep(5)


if __name__ == "__main__":
    main()
