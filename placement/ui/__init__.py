"""The console below /ui: HTML pages rendered on the server, from the same services and policy rules as the API.

The pages are read-only and accept nothing but GET and HEAD. They work without JavaScript, which only adds convenience,
and load nothing from other hosts.
"""
