"""Stores that earlier versions of the program have made, as files of the embedded engine.

`unpack_older_store`: LMDB format 1, containers of layout 1. Database `older`. `flat`: key `/pk`, two partitions, a
composite index (m DESC, n ASC); `deep`: key `/tenant`, `/user`; `first`: key `/pk` of version 1. Each was given 60
items, `n` from 0 on, with ids that sort otherwise. In `flat` every tenth item was changed afterwards, and every tenth
from the sixth on was deleted.

`unpack_layout_2_store`: layout 2, made by the commit e720915, the last one before documents had codecs. Database
`earlier` of the account `test`, with the containers
- `plain`: key `/pk`, unique key `/name`, a composite index (m DESC, n ASC), versions kept. 40 items `i0` to `i39`, of
  which each tenth was upserted with m = 9, `i5` deleted, `i6` renamed to `renamed`, `i7` patched (n + 100); one with a
  long id, one that is not indexed, and five of a batch;
- `fading`: time to live 3600 s; `t0` and `t3` never expire, `t1` and `t4` after 60 s;
- `levels`: key `/tenant`, `/user`; `first`: key `/pk` of version 1, values of 99 characters; `fixed`: without a key.
"""

from __future__ import annotations

import lzma
from pathlib import Path

_FIXTURES = Path(__file__).parents[1] / "fixtures"
DELETED = range(5, 60, 10)
# The second in which all items of the store of layout 2 were written, and the long id in it.
LAYOUT_2_WALL_SECONDS = 1_700_000_000.0
LONG_ID = "é" * 200


def unpack_older_store(data: Path) -> None:
    """Put the store of layout 1 where a server with this data directory looks for its store."""
    _unpack("store_format_1.mdb.xz", data / "store")


def unpack_layout_2_store(directory: Path) -> None:
    """Put the store of layout 2 where an engine of this directory looks for it."""
    _unpack("store_layout_2.mdb.xz", directory)


def _unpack(name: str, directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "data.mdb").write_bytes(lzma.decompress((_FIXTURES / name).read_bytes()))
