"""Runs that are HTTP calls: one request per attempt, made only to addresses the target policy allows."""

from ksana.targets.http.limits import Limits
from ksana.targets.http.policy import TargetPolicy
from ksana.targets.http.target import HttpTarget
from ksana.targets.services import TargetServices

__all__ = ["HttpTarget", "Limits", "TargetPolicy", "build"]


def build(services: TargetServices) -> HttpTarget:
    """For the entry point; without a policy only public addresses are called."""
    policy = services.http_policy
    return HttpTarget(
        policy=policy if isinstance(policy, TargetPolicy) else _PUBLIC_ONLY,
        now=services.now,
        limits=Limits(max_response_bytes=services.max_response_bytes),
        global_headers=services.http_global_headers,
        signing_secret=services.http_signing_secret,
    )


_PUBLIC_ONLY = TargetPolicy(allow_loopback=False, allow_private=False)
