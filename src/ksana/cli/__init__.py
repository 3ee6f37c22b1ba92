"""The `ksana` command."""


def main() -> None:
    """Entry point of the `ksana` script."""
    raise SystemExit("not built yet")
