"""What operators see of a running server: one record for each request, the access log and the metrics made of it."""
