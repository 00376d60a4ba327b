"""The console below /ui: pages for people, made by the server from the same use cases and rules as the API.

They only show, except where a page says otherwise. Without JavaScript everything that shows works; scripts add
comfort. Nothing is loaded from elsewhere.
"""
