"""What each metric means: the help texts of ``/metrics``, and the reference page of metrics.

``_total`` ends the names of counters; histograms also have ``_bucket``, ``_sum`` and ``_count``.
"""

MEANINGS = {
    "placement_request_seconds": "How long requests took, by method, route and status. A histogram.",
    "placement_sql_statements_total": "SQL statements that requests have sent.",
    "placement_candidate_search_seconds": "How long searches for candidates took. A histogram.",
    "placement_candidate_search_trees": "How many trees the candidates of an answer were in. A histogram.",
    "placement_candidate_search_candidates": "How many candidates an answer had. A histogram.",
    "placement_candidate_search_budget_hits_total": "Searches that reached their limit of steps.",
    "placement_candidate_search_empty_total": "Searches that found nothing, by cause.",
    "placement_candidate_cache_hits_total": "Searches that the server answered from its cache.",
    "placement_transaction_retries_total": "Transactions that the server repeated, by reason: deadlocks, "
    "serialization failures, lost connections, failures of the standby.",
    "placement_database_faults_total": "Requests answered with 503 because the database failed, by cause.",
    "placement_failed_writes_total": "Those of them that were to write, by cause.",
    "placement_caches_dropped_total": "How often a worker dropped its caches, by reason: triggers, if somebody "
    "changed them, or difference, if a cached tree was not as in the tables.",
    "placement_worker_starts_total": "Processes that have begun to serve; an increase means restarts.",
    "placement_requests_in_progress": "Requests that threads serve now, over all workers.",
    "placement_requests_waiting": "Requests that wait for a thread, with the shipped worker class.",
    "placement_threads": "Threads that serve requests, with the shipped worker class.",
    "placement_database_connections": "Database connections in use, over all workers.",
    "placement_database_connections_limit": "The largest number of database connections, over all workers.",
    "placement_journal_listeners": "Clients that follow the journal, over all workers.",
    "placement_caches_read_timestamp_seconds": "When the worker with the oldest caches last read them from the tables.",
    "placement_worker_memory_bytes": "Resident memory of each process.",
    "placement_build_info": "1, with the version of the server, of Python, and the kind of database.",
    "placement_usage_is_kept": "1 if triggers keep usage, 0 if they are missing or may have missed something.",
    "placement_journal_is_written": "1 if triggers write the journal, 0 if they are missing.",
    "placement_standby_is_used": "1 if the worker that was asked reads from the standby.",
    "placement_journal_rows": "Rows of the journal, at most.",
    "placement_journal_age_seconds": "Age of the oldest row of the journal.",
    "placement_journal_lag_seconds": "Age of the oldest row that readers cannot have yet; 0 except on MariaDB.",
    "openstack_placement_up": "1 if the database answers.",
    "openstack_placement_resource_total": "Total inventory of a resource class, by hostname and resourcetype.",
    "openstack_placement_resource_allocation_ratio": "Its allocation ratio.",
    "openstack_placement_resource_reserved": "How much of it is reserved.",
    "openstack_placement_resource_usage": "How much of it is allocated.",
    "openstack_placement_resource_generation": "The generation of the provider.",
    "openstack_placement_resource_provider_allocations": "What each consumer holds, with [metrics] allocations.",
    "openstack_free_capacity_by_flavor_total": "How many more instances of a flavor fit.",
    "openstack_free_capacity_hypervisor_by_flavor": "How many more fit on a host, with [headroom] by_hypervisor.",
}
