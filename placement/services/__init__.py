"""Use cases: one public function is one unit of work."""
