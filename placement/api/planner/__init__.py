"""HTTP below /planner/v1: what this server offers beyond the Placement API. One module per REST resource.

There are no microversions here. ``call.document(schema)`` validates bodies and reports errors with their path in the
body; services raise ``InvalidAt`` for what only the database can tell. ``api/routes.py`` lists the routes.
"""
