"""Other schedulers, each at its best known settings, installed apart and measured beside us."""
