"""HTTP below /planner/v1: what this server can do beyond the Placement API. One module for each resource.

There are no microversions here. Bodies are checked with ``call.document(schema)``, which tells a fault with its path in
the body; use cases raise ``InvalidAt`` for what only the database can tell. ``routes.py`` lists the routes.
"""
