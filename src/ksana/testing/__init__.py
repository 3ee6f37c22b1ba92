"""Schedules tried out in tests: time that passes when told, HTTP that answers as told, and no waiting for either."""
