"""The strategy fit: scores nodes for a request by what resources they have and how full these are.

Three policies, those of Volcano's ResourceStrategyFit: *fit* packs some resources and spreads others, *sra* keeps
requests off nodes that have scarce resources, *proportional* reserves other resources for idle scarce ones. A
``Profile`` says which of them count and how much.

Amounts are integers; choose units fine enough (thousandths of a core, megabytes). A class that a node lacks may be
missing or 0. Names in requests and nodes are resource classes; ``entries.resource_class`` translates a vendor's.

>>> from placement.allocators.strategy_fit.profile import Fit, Preference, Profile, Sra
>>> from placement.allocators.strategy_fit.scorer import scorer_for
>>> gpu_first = Profile(
...     fit=Fit({"PGPU": Preference("MostAllocated", 2), "VCPU": Preference("LeastAllocated", 1)}),
...     sra=Sra({"PGPU": 1}, weight=10),
... )
>>> scorer = scorer_for(gpu_first, {"VCPU": 4}, ["PGPU", "VCPU"])
>>> scorer.classes, scorer.score((0, 32), (0, 0)), scorer.score((8, 16), (0, 0))
(('PGPU', 'VCPU'), 1875.0, 750.0)
"""
