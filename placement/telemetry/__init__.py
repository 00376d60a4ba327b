"""What operators see of a running server: a record per request, and the access log and metrics derived from it."""
