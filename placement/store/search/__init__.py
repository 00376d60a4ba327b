"""The SQL of candidate searches: which providers and trees can serve a request, and their summaries."""
