"""The API reference: an OpenAPI 3.1 document made from the routes, their schemas and a story that is played through.

Nothing here runs while requests are served.
"""
