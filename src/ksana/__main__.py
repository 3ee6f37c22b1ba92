"""`python -m ksana` is the `ksana` command."""

from ksana.cli import main

main()
