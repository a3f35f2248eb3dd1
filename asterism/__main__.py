"""`python -m asterism` is the `asterism` program."""

from __future__ import annotations

from asterism.cli.main import main

main()
