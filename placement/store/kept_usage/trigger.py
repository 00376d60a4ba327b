"""The names of the triggers that keep ``provider_usages`` exact, the same in each kind of database.

A row of ``provider_usages`` tells what a provider uses of a class, whoever writes ``allocations`` - this server, the
reference, an operator with a SQL shell. Beside it stand what the provider can give of the class (``capacity``, null
where it has no inventory) and the root of its tree, so that whole trees are summed up without a join. A row that falls
to 0 stays: removing and making it again under load would only breed deadlocks.
"""

INSERTED = "provider_usages_inserted"
UPDATED = "provider_usages_updated"
DELETED = "provider_usages_deleted"
TRUNCATED = "provider_usages_truncated"
GATE = "provider_usages_gate"
STOCKED = "provider_usages_stocked"
RESTOCKED = "provider_usages_restocked"
UNSTOCKED = "provider_usages_unstocked"
EMPTIED = "provider_usages_emptied"
PROVIDER_MOVED = "provider_usages_provider_moved"
PROVIDER_DELETED = "provider_usages_provider_deleted"
