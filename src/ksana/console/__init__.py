"""The console: pages for people, built under `web/` and served from the package, with nothing asked of anyone else."""

from ksana.console.serving import Console

__all__ = ["Console"]
