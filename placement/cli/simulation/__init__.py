"""The parts of ``placement simulate``: the effect of ranking on a cloud, with a synthetic workload.

Search and ranking are the server's own (``placement.candidates``); ``cloud.py`` replaces the database. A test compares
both: for the same jobs, the server chooses the same places.
"""
