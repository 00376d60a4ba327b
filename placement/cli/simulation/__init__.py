"""What ranking does for a cloud, on a workload made up for the purpose: the parts of ``placement simulate``.

The search and the order of candidates are the server's own (``placement.candidates``); what stands in for the database
is ``cloud.py``. A test holds both against each other: the server answers the same jobs with the same places.
"""
