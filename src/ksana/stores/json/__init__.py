"""The whole state in memory and in one readable file, `jobs.json`, with what has ended in a file beside it."""
