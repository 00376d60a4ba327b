"""Use cases: each public function is one unit of work."""
