"""Runs that are HTTP calls: one request per attempt, made only to addresses the target policy allows."""

from ksana.targets.http.limits import Limits
from ksana.targets.http.policy import TargetPolicy
from ksana.targets.http.target import HttpTarget

__all__ = ["HttpTarget", "Limits", "TargetPolicy"]
