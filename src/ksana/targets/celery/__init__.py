"""Runs that are tasks of a Celery fleet. Celery is imported when the first of them is sent, and not before."""

import os

from ksana.targets.celery.target import CeleryTarget
from ksana.targets.services import TargetServices

__all__ = ["CeleryTarget", "build"]


def build(services: TargetServices) -> CeleryTarget:
    """For the entry point. Servers that others can reach take brokers from their environment alone."""
    policy = services.http_policy
    may_name_hosts = bool(getattr(policy, "allow_private", False))
    return CeleryTarget(environ=os.environ, sleep=services.sleep, may_name_hosts=may_name_hosts)
