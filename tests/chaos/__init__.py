"""Real processes, really killed: what a virtual clock cannot prove."""
