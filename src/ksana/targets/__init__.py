"""What a run does: one small file per target, found by entry point."""
