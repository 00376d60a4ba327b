"""Why a request has no candidates: pure functions from counted facts to an explanation."""
