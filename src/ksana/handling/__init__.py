"""Puts the handlers of a program to work: on the queues of a store, or on those of a server."""
