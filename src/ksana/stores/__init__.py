"""Where jobs and runs live: one protocol, several stores."""
