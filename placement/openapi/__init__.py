"""The API reference: an OpenAPI 3.1 document generated from the routes, their schemas and a story that is replayed.

Nothing here runs while requests are served.
"""
