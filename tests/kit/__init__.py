"""Real things for tests to work against: an HTTP server that records, and processes that can be killed."""
