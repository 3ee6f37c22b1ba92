"""Logs and metrics: subscribers to what the engine says happened."""
