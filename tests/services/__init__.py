"""The servers the tests talk to: found on loopback, started, installed, or done without and said so."""
