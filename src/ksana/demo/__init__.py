"""A server with one sample for each way to schedule, against a target of its own: nothing leaves the machine."""
