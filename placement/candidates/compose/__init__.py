"""Composing in one tree: from what its providers can serve to choices, or proposals, best first.

A plain request is composed by ``slots``, a search under ``constraints``; ``compact`` puts its choices in order, and so
does ``pooled`` if others share with the tree. A planner request is composed by ``devices`` or, if its resources have
hierarchical names, ``paths``: both ask an allocator. All other modules spare them trees without a proposal:
``any_choice``, ``torn_subtrees``, ``free_places`` and ``device_room`` before the details of a tree are read,
``room_alone`` with ``rival_room``, ``common_places`` and ``common_heads`` before the allocator is asked. ``one_place``
puts a request into a form in which more of them apply.
"""
