"""The fixture under test, as the plug-in gives it to others: this suite loads no plug-in it does not name."""

from ksana.testing.plugin import ksana_fixture

__all__ = ["ksana_fixture"]
