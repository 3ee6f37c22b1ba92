"""Schedules that live in code, with their state and their locks in Redis."""

from ksana.periodic.core_queue import CoreQueue
from ksana.periodic.errors import DuplicateSchedule, InvalidSchedule, LockError, ScheduleRegistrationError, StateError
from ksana.periodic.lock import DistributedLock, acquire_lock
from ksana.periodic.queue import Queue
from ksana.periodic.registry import Registry
from ksana.periodic.schedule import Job, JobPriority, Schedule, ScheduleState
from ksana.periodic.scheduler import CronScheduler

__all__ = [
    "CoreQueue",
    "CronScheduler",
    "DistributedLock",
    "DuplicateSchedule",
    "InvalidSchedule",
    "Job",
    "JobPriority",
    "LockError",
    "Queue",
    "Registry",
    "Schedule",
    "ScheduleRegistrationError",
    "ScheduleState",
    "StateError",
    "acquire_lock",
]
