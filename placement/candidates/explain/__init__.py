"""Why a request has no candidates: the masks of the search, counted one by one, and with one left out.

``explanation`` is the answer, also in sentences, with the conditions by name. A condition on single providers, or on
whole trees, is a mask over the columns of a cloud (``masks``). What only the search can check is added condition by
condition; the search is asked in one tree of those that are alike (``partial_search``). So is that of the planner, with
some of the rules of a request (``explain_rules``). ``explain`` says what would help.
"""
