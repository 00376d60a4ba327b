"""Mirror a cloud into memory through its journal, and compare the mirror with the server: mirror.py URL TOKEN."""

import json
import sys
import time
from collections import Counter
from urllib.request import Request, urlopen


def snapshot(get):
    """Return all providers by uuid, and the current cursor; ``get`` returns (document, headers) for a path."""
    document, headers = get("/planner/v1/inventory")
    mirror = {one["uuid"]: one | {"usages": Counter(one["usages"])} for one in document["providers"]}
    return mirror, headers["x-placement-journal"]


def follow(get, mirror, cursor):
    """Apply the rows after a cursor, and return the next cursor. 410: the rows are gone, so take a new snapshot."""
    while (answer := get(f"/planner/v1/journal?limit=1000&after={cursor}")[0])["entries"]:
        for row in answer["entries"]:
            apply(mirror, row)
        cursor = answer["cursor"]
    return answer["cursor"]


def apply(mirror, row):
    """Apply one row of the journal."""
    kind, uuid, class_ = row["kind"], row.get("provider_uuid"), row.get("resource_class")
    if kind == "provider" and row["action"] == "deleted":
        del mirror[uuid]
    elif kind in ("provider", "generation"):
        new = {"uuid": uuid, "inventories": {}, "usages": Counter(), "traits": [], "aggregates": []}
        mirror.setdefault(uuid, new).update(row.get("new", {}), generation=row["generation"])
    elif kind == "inventory":
        others = {name: stock for name, stock in mirror[uuid]["inventories"].items() if name != class_}
        mirror[uuid]["inventories"] = others | ({class_: row["new"]} if "new" in row else {})
    elif kind == "allocation":
        mirror[uuid]["usages"][class_] += row.get("new_amount", 0) - row.get("old_amount", 0)
    elif kind in ("trait", "aggregate"):  # created if missing, else deleted
        mirror[uuid][f"{kind}s"] = sorted({*mirror[uuid][f"{kind}s"]} ^ {row["name"]})
    elif kind == "class_name" and row["action"] == "changed":
        rename(mirror, row["old"]["name"], row["new"]["name"])


def rename(mirror, old, new):
    """Rename a resource class, wherever it is."""
    for of_classes in [one[what] for one in mirror.values() for what in ("inventories", "usages")]:
        if old in of_classes:
            of_classes[new] = of_classes.pop(old)


if __name__ == "__main__":
    url, token = sys.argv[1:] if len(sys.argv) == 3 else sys.exit(__doc__)

    def get(path):  # noqa: D103
        with urlopen(Request(url + path, headers={"X-Auth-Token": token})) as answer:  # noqa: S310
            return json.load(answer), answer.headers

    mirror, cursor = snapshot(get)
    while True:
        fresh, at = snapshot(get)
        cursor, at = follow(get, mirror, cursor), follow(get, fresh, at)
        print(len(mirror), "providers,", "as told" if mirror == fresh else "changing" if cursor != at else "WRONG")
        time.sleep(5)
