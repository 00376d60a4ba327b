"""Why a request has no candidates: pure functions from counted facts to an explanation.

``conditions`` names what a request asks for, ``explanation`` is the answer, and ``wording`` puts it into sentences. A
condition on single providers, or on whole trees, is a set of those that meet it (``provider_filters``, ``demands``,
``tree_filters``, and all of them in a ``cloud``). What only a search can check is added condition by condition
(``stages``, ``tree_search``); so are the rules of a planner request (``rules``, ``rule_search``). ``explain`` and
``explain_rules`` go through all of that. ``near_misses`` tells what would help, and ``hints`` what newcomers get wrong.
"""
