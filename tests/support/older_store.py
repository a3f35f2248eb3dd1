"""A store that an earlier version of the program has made: LMDB format 1, containers of layout 1.

Database `older`. `flat`: key `/pk`, two partitions, a composite index (m DESC, n ASC); `deep`: key `/tenant`, `/user`;
`first`: key `/pk` of version 1. Each was given 60 items, `n` from 0 on, with ids that sort otherwise. In `flat` every
tenth item was changed afterwards, and every tenth from the sixth on was deleted.
"""

from __future__ import annotations

import lzma
from pathlib import Path

_FILE = Path(__file__).parents[1] / "fixtures" / "store_format_1.mdb.xz"
DELETED = range(5, 60, 10)


def unpack_older_store(data: Path) -> None:
    """Put it where a server with this data directory looks for its store."""
    (data / "store").mkdir(parents=True)
    (data / "store" / "data.mdb").write_bytes(lzma.decompress(_FILE.read_bytes()))
