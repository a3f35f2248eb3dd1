"""The program, with one row more in its table of doors."""

from __future__ import annotations

from asterism.cli.main import app, main
from asterism.cli.serve import serve_command
from asterism.server.doors import DOORS
from tests.toy_door.spec import SPEC

app.command("serve")(serve_command((*DOORS, SPEC)))
main()
