"""Settings: flag > KSANA_* > bare name > YAML file > default, every value with its source.

Nothing outside this package reads the environment.
"""

from ksana.config.exposure import check_exposure, is_loopback
from ksana.config.kinds import RefusedError
from ksana.config.load import environment, load_settings
from ksana.config.model import (
    Auth,
    Callback,
    DefaultRetry,
    Executor,
    Logging,
    Metrics,
    Recovery,
    Scheduler,
    Server,
    Settings,
    Storage,
)
from ksana.config.reference import Row, render_reference, settings_report
from ksana.config.urls import mask_url, store_url

__all__ = [
    "Auth",
    "Callback",
    "DefaultRetry",
    "Executor",
    "Logging",
    "Metrics",
    "Recovery",
    "RefusedError",
    "Row",
    "Scheduler",
    "Server",
    "Settings",
    "Storage",
    "check_exposure",
    "environment",
    "is_loopback",
    "load_settings",
    "mask_url",
    "render_reference",
    "settings_report",
    "store_url",
]
