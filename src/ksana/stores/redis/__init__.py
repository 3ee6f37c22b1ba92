"""Everything in Redis: each verb is one script, so it happens as a whole or not at all."""
