"""Exceptions by which a function says how its attempt ended, where an ordinary one would say too little."""

from ksana.domain.signals import Fail, Retry

__all__ = ["Fail", "Retry"]
