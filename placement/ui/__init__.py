"""The console below /ui: pages for people, made by the server from the same use cases and rules as the API.

They only show, and take nothing but GET. Without JavaScript nothing is missing but comfort. Nothing is loaded from
elsewhere.
"""
