"""How others reach it over HTTP: surfaces on one small kit."""
