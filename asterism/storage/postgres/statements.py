"""SQL statements of the engine: calls of the database's functions, and reads of its tables."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from asterism.values.identifiers import PartitionNumber

CREATE_PARTITION = "SELECT asterism.create_partition_v1($1, $2, $3, $4, $5, $6, $7, $8, $9)"
DROP_PARTITION = "SELECT asterism.drop_partition_v1($1, $2)"
SET_FENCE = "SELECT asterism.set_fence_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
RESOLVE = "SELECT asterism.resolve_v1($1, $2, $3)"
LIST_PARTITIONS = """
SELECT array_agg(s.number), array_agg(s.epoch), array_agg(s.sealed), array_agg(s.journaling), array_agg(s.lsn)
FROM (SELECT * FROM asterism.partitions WHERE NOT dropping ORDER BY number) s
"""
READ_FENCE = "SELECT epoch, sealed, journaling, lsn FROM asterism.partitions WHERE number = $1 AND NOT dropping"
READ_JOURNAL = """
SELECT m.journaling, ARRAY(SELECT j.lsn FROM asterism.journal j
    WHERE j.partition = $1 AND j.lsn > greatest($2, m.journal_after) ORDER BY j.lsn LIMIT $3),
    ARRAY(SELECT j.record FROM asterism.journal j
    WHERE j.partition = $1 AND j.lsn > greatest($2, m.journal_after) ORDER BY j.lsn LIMIT $3)
FROM asterism.partitions m WHERE m.number = $1 AND NOT m.dropping
"""
REMOVE_JOURNAL = """
WITH gone AS (
    DELETE FROM asterism.journal WHERE partition = $1 AND lsn IN (
        SELECT j.lsn FROM asterism.journal j, asterism.partitions m
        WHERE j.partition = $1 AND m.number = $1 AND j.lsn <= m.journal_after ORDER BY j.lsn LIMIT $2)
    RETURNING 1
) SELECT count(*) FROM gone
"""


@dataclass(frozen=True, slots=True)
class PartitionStatements:
    """The statements that name one partition's table or functions. Each is prepared once on a connection."""

    read_one: str
    read_many: str
    apply: str
    copy: str
    # By (reverse, has an end).
    scans: dict[tuple[bool, bool], str]


def _parameters(count: int) -> str:
    return ", ".join(f"${number}" for number in range(1, count + 1))


def _scan(number: int, *, reverse: bool, has_end: bool) -> str:
    """Return the scan: $1 start, $2 maximum of entries, one more than the page has; $3 maximum of bytes; $4 end."""
    order = "DESC" if reverse else "ASC"
    end = "AND k < $4" if has_end else ""
    return f"""
SELECT m.epoch, m.sealed, m.lsn, page.keys, page.vals, page.found
FROM asterism.partitions m CROSS JOIN LATERAL (
    SELECT array_agg(w.k) FILTER (WHERE w.is_in) AS keys, array_agg(w.v) FILTER (WHERE w.is_in) AS vals,
        count(*) AS found
    FROM (
        SELECT s.k, s.v, s.i < $2 AND (s.i = 1 OR s.bytes_before < $3) AS is_in
        FROM (
            SELECT r.k, r.v, row_number() OVER rows_so_far AS i,
                sum(length(r.k) + length(r.v)) OVER rows_so_far - (length(r.k) + length(r.v)) AS bytes_before
            FROM (SELECT k, v FROM asterism.p{number} WHERE k >= $1 {end} ORDER BY k {order} LIMIT $2) r
            WINDOW rows_so_far AS (ORDER BY r.k {order} ROWS UNBOUNDED PRECEDING)
        ) s
    ) w
) page
WHERE m.number = {number} AND NOT m.dropping
"""


@lru_cache(maxsize=4096)
def statements(number: PartitionNumber) -> PartitionStatements:
    meta = "SELECT m.epoch, m.sealed, m.lsn"
    where = f"WHERE m.number = {number} AND NOT m.dropping"
    return PartitionStatements(
        read_one=f"{meta}, t.v FROM asterism.partitions m LEFT JOIN asterism.p{number} t ON t.k = $1 {where}",
        read_many=f"{meta}, ARRAY(SELECT t.v FROM unnest($1::bytea[]) WITH ORDINALITY q(k, i) "
        f"LEFT JOIN asterism.p{number} t ON t.k = q.k ORDER BY q.i) FROM asterism.partitions m {where}",
        apply=f"SELECT asterism.apply_v1_p{number}({_parameters(22)})",
        copy=f"SELECT asterism.copy_v2_p{number}({_parameters(8)})",
        scans={
            (reverse, has_end): _scan(number, reverse=reverse, has_end=has_end)
            for reverse in (False, True)
            for has_end in (False, True)
        },
    )
