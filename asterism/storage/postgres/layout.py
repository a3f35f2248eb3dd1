"""Layout of the engine's database: its tables, and the functions that change them.

docs/storage-format.md describes it in prose. The functions exist so that a batch is one round trip: each statement
inside a function sees everything committed before it started, which a single statement with many parts would not.
"""

from __future__ import annotations

from asterism.storage.contract import KEY_BYTES_MAX

# Version 2 keeps programs off that know only 1: they would write items that readers of version 2 do not find.
FORMAT_VERSION = 2
OLDEST_FORMAT_VERSION = 1
# Raised whenever a function below changes. If its arguments or its meaning change, the version is part of its name, so
# that programs of two versions can use one database.
FUNCTIONS_VERSION = 2
CHANNEL = "asterism"
PARTITION_NUMBER_MAX = (1 << 63) - 1
# Number of gateways whose last order a partition remembers; see `resolve`.
GATEWAYS_MAX = 32

# First number of the answer of `apply` and `copy`.
DONE = 0
UNKNOWN_PARTITION = 1
FENCED = 2
REFUSED = 3
NEEDS_JOURNAL = 4
ABANDONED = 5
# Answers of `resolve`, `set_fence` and `create_partition` in place of an LSN.
NOT_THERE = -1
NOT_DONE = -2
CANNOT_TELL = -3
OTHER_FENCE = -4
EXISTS = -5
GIVEN_UP = -6

TABLES = f"""
CREATE SCHEMA IF NOT EXISTS asterism;
CREATE TABLE IF NOT EXISTS asterism.node (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    format_version integer NOT NULL,
    functions_version integer NOT NULL,
    fleet text,
    number bigint,
    name text
);
CREATE TABLE IF NOT EXISTS asterism.partitions (
    number bigint PRIMARY KEY,
    epoch bigint NOT NULL,
    sealed boolean NOT NULL,
    journaling boolean NOT NULL,
    announced boolean NOT NULL,
    dropping boolean NOT NULL DEFAULT false,
    lsn bigint NOT NULL,
    journal_after bigint NOT NULL,
    gateways bigint[] NOT NULL,
    tokens bigint[] NOT NULL,
    outcomes bigint[] NOT NULL
) WITH (fillfactor = 30, autovacuum_vacuum_scale_factor = 0.5);
CREATE TABLE IF NOT EXISTS asterism.journal (
    partition bigint NOT NULL,
    lsn bigint NOT NULL,
    record bytea NOT NULL,
    PRIMARY KEY (partition, lsn)
);
INSERT INTO asterism.node (format_version, functions_version) VALUES ({FORMAT_VERSION}, 0) ON CONFLICT DO NOTHING;
"""

# Stores the last order of a gateway in a partition's row: the caller holds the row's lock and writes the three arrays
# back. An outcome of 0 or more is the LSN at the start of the order; a negative one is an order given up at LSN
# -1 - outcome. With too many gateways, the one whose last order is oldest is dropped.
_REMEMBER = f"""
    IF slot IS NULL THEN
        slot := cardinality(meta.gateways) + 1;
        IF slot > {GATEWAYS_MAX} THEN
            SELECT o.i INTO slot FROM unnest(meta.outcomes) WITH ORDINALITY o(outcome, i)
                ORDER BY greatest(o.outcome, -1 - o.outcome) LIMIT 1;
        END IF;
        meta.gateways[slot] := in_gateway;
    END IF;
    meta.tokens[slot] := in_token;
    meta.outcomes[slot] := outcome;
"""

_FIRST_COUNTER = "('x' || encode(substr({value}, {start}, 8), 'hex'))::bit(64)::bigint"

FUNCTIONS = f"""
CREATE OR REPLACE FUNCTION asterism.add_counters_v1(stored bytea, deltas bytea) RETURNS bytea
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    total bytea := '';
    place integer := 1;
    counter bigint;
BEGIN
    stored := coalesce(stored, '');
    WHILE place <= greatest(length(stored), length(deltas)) LOOP
        counter := 0;
        IF place <= length(stored) THEN
            counter := {_FIRST_COUNTER.format(value="stored", start="place")};
        END IF;
        IF place <= length(deltas) THEN
            counter := counter + {_FIRST_COUNTER.format(value="deltas", start="place")};
        END IF;
        total := total || int8send(counter);
        place := place + 8;
    END LOOP;
    RETURN CASE WHEN btrim(total, '\\x00'::bytea) = '' THEN NULL ELSE total END;
END $$;

CREATE OR REPLACE FUNCTION asterism.create_partition_v1(
    part bigint, in_gateway bigint, in_token bigint,
    in_epoch bigint, in_sealed boolean, in_journaling boolean, in_announced boolean, in_lsn bigint, ddl text
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    meta record;
BEGIN
    INSERT INTO asterism.partitions VALUES (
        part, in_epoch, in_sealed, in_journaling, in_announced, false, in_lsn, in_lsn,
        ARRAY[in_gateway], ARRAY[in_token], ARRAY[in_lsn]
    ) ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        -- The same order may have been carried out over a connection that was lost.
        SELECT p.gateways, p.tokens INTO meta FROM asterism.partitions p WHERE p.number = part;
        RETURN CASE WHEN meta.tokens[array_position(meta.gateways, in_gateway)] = in_token THEN in_lsn
            ELSE {EXISTS} END;
    END IF;
    EXECUTE ddl;
    RETURN in_lsn;
END $$;

CREATE OR REPLACE FUNCTION asterism.drop_partition_v1(part bigint, entries_max bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    was_dropping boolean;
    is_small boolean;
BEGIN
    SELECT p.dropping INTO was_dropping FROM asterism.partitions p WHERE p.number = part FOR UPDATE;
    IF NOT FOUND THEN
        RETURN true;
    END IF;
    IF NOT was_dropping THEN
        UPDATE asterism.partitions SET dropping = true WHERE number = part;
        EXECUTE format('SELECT count(*) <= %s FROM (SELECT FROM asterism.p%s LIMIT %s) s',
            entries_max, part, entries_max + 1) INTO is_small;
        IF NOT is_small THEN
            RETURN false;
        END IF;
    END IF;
    BEGIN
        PERFORM set_config('lock_timeout', '500ms', true);
        EXECUTE format('DROP TABLE IF EXISTS asterism.p%s', part);
    EXCEPTION WHEN lock_not_available THEN
        -- A snapshot still reads it.
        RETURN false;
    END;
    EXECUTE format('DROP FUNCTION IF EXISTS asterism.apply_v1_p%s', part);
    -- A program before version 2 of the functions has made it.
    EXECUTE format('DROP FUNCTION IF EXISTS asterism.copy_v1_p%s', part);
    EXECUTE format('DROP FUNCTION IF EXISTS asterism.copy_v2_p%s', part);
    DELETE FROM asterism.journal WHERE partition = part;
    DELETE FROM asterism.partitions WHERE number = part;
    RETURN true;
END $$;

CREATE OR REPLACE FUNCTION asterism.set_fence_v1(
    part bigint, in_gateway bigint, in_token bigint,
    in_epoch bigint, in_sealed boolean, in_journaling boolean, in_lsn bigint,
    expected_epoch bigint, expected_sealed boolean, expected_journaling boolean
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    meta record;
    slot integer;
    outcome bigint;
BEGIN
    SELECT p.* INTO meta FROM asterism.partitions p WHERE p.number = part AND NOT p.dropping FOR UPDATE;
    IF NOT FOUND THEN
        RETURN {NOT_THERE};
    END IF;
    slot := array_position(meta.gateways, in_gateway);
    IF meta.tokens[slot] >= in_token THEN
        RETURN {GIVEN_UP};
    END IF;
    IF expected_epoch IS NOT NULL AND (meta.epoch, meta.sealed, meta.journaling)
            <> (expected_epoch, expected_sealed, expected_journaling) THEN
        RETURN {OTHER_FENCE};
    END IF;
    meta.lsn := greatest(meta.lsn, in_lsn);
    outcome := meta.lsn;
    {_REMEMBER}
    UPDATE asterism.partitions SET
        epoch = in_epoch, sealed = in_sealed, journaling = in_journaling, lsn = meta.lsn,
        journal_after = CASE WHEN journaling <> in_journaling THEN meta.lsn ELSE journal_after END,
        gateways = meta.gateways, tokens = meta.tokens, outcomes = meta.outcomes
    WHERE number = part;
    RETURN meta.lsn;
END $$;

CREATE OR REPLACE FUNCTION asterism.resolve_v1(part bigint, in_gateway bigint, in_token bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    meta record;
    slot integer;
    outcome bigint;
BEGIN
    SELECT p.* INTO meta FROM asterism.partitions p WHERE p.number = part FOR UPDATE;
    IF NOT FOUND OR meta.dropping THEN
        RETURN {NOT_THERE};
    END IF;
    slot := array_position(meta.gateways, in_gateway);
    IF slot IS NULL AND cardinality(meta.gateways) >= {GATEWAYS_MAX} THEN
        outcome := {CANNOT_TELL};
    ELSIF meta.tokens[slot] = in_token THEN
        outcome := CASE WHEN meta.outcomes[slot] < 0 THEN {NOT_DONE} ELSE meta.outcomes[slot] END;
    ELSIF meta.tokens[slot] > in_token THEN
        -- A question that the network held back until after a later order. Nobody waits for the answer any more, but
        -- the later order must not be forgotten for it: it would be carried out twice.
        RETURN {CANNOT_TELL};
    ELSE
        outcome := -1 - meta.lsn;
        {_REMEMBER}
        outcome := {NOT_DONE};
    END IF;
    -- Writing the row also makes this answer as durable as the order it is about.
    UPDATE asterism.partitions SET gateways = meta.gateways, tokens = meta.tokens, outcomes = meta.outcomes
    WHERE number = part;
    RETURN outcome;
END $$;
"""

_PARTITION = f"""
CREATE TABLE asterism.p{{number}} (k bytea PRIMARY KEY CHECK (length(k) <= {KEY_BYTES_MAX}), v bytea NOT NULL)
    WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.05);
"""

# Both lock the partition's row before anything else, so that LSNs are assigned in the order of commits, and read the
# data in later statements, which see everything that was committed under the lock before.
_BEGIN_ORDER = f"""
    SELECT p.epoch, p.sealed, p.journaling, p.announced, p.lsn, p.gateways, p.tokens, p.outcomes INTO meta
        FROM asterism.partitions p WHERE p.number = {{number}} AND NOT p.dropping FOR UPDATE;
    IF NOT FOUND THEN
        RETURN ARRAY[{UNKNOWN_PARTITION}];
    END IF;
    slot := array_position(meta.gateways, in_gateway);
    IF meta.tokens[slot] >= in_token THEN
        RETURN ARRAY[{ABANDONED}];
    END IF;
"""

_DELETE_SPANS = """
    FOR place IN 1 .. cardinality(r_starts) LOOP
        IF r_ends[place] IS NULL THEN
            DELETE FROM asterism.p{number} t WHERE t.k >= r_starts[place];
        ELSE
            DELETE FROM asterism.p{number} t WHERE t.k >= r_starts[place] AND t.k < r_ends[place];
        END IF;
    END LOOP;
"""

# A refused call has nothing to make durable: without the setting it would still wait for the disk.
_DO_NOT_WAIT = "PERFORM set_config('synchronous_commit', 'off', true);"

_PARTITION_FUNCTIONS = f"""
CREATE OR REPLACE FUNCTION asterism.apply_v1_p{{number}}(
    in_gateway bigint, in_token bigint, in_epoch bigint, batches integer,
    c_keys bytea[], c_begins bytea[], c_limits bigint[],
    r_starts bytea[], r_ends bytea[], d_keys bytea[], p_keys bytea[], p_values bytea[],
    v_keys bytea[], v_values bytea[], v_steps integer[],
    s_heads bytea[], s_tails bytea[], s_values bytea[], s_steps integer[],
    a_keys bytea[], a_deltas bytea[], j_records bytea[]
) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    meta record;
    slot integer;
    outcome bigint;
    refused bigint[];
    gone_keys bytea[];
    sum_keys bytea[];
    sum_values bytea[];
BEGIN
    {_BEGIN_ORDER}
    IF meta.sealed OR meta.epoch <> in_epoch THEN
        {_DO_NOT_WAIT}
        RETURN ARRAY[{FENCED}];
    END IF;
    IF meta.journaling AND j_records IS NULL THEN
        {_DO_NOT_WAIT}
        RETURN ARRAY[{NEEDS_JOURNAL}];
    END IF;
    IF cardinality(c_keys) > 0 THEN
        SELECT array_agg(c.i) INTO refused
        FROM unnest(c_keys, c_begins, c_limits) WITH ORDINALITY c(k, begins, ceiling, i)
            LEFT JOIN asterism.p{{number}} t ON t.k = c.k
        WHERE CASE
            WHEN c.ceiling IS NOT NULL THEN
                coalesce({_FIRST_COUNTER.format(value="t.v", start="1")}, 0) > c.ceiling
            WHEN c.begins IS NULL THEN t.k IS NOT NULL
            ELSE t.k IS NULL OR substr(t.v, 1, length(c.begins)) <> c.begins
        END;
        IF refused IS NOT NULL THEN
            {_DO_NOT_WAIT}
            RETURN ARRAY[{REFUSED}, meta.lsn, meta.journaling::integer] || refused;
        END IF;
    END IF;
    {_DELETE_SPANS}
    IF cardinality(a_keys) > 0 THEN
        SELECT array_agg(s.k) FILTER (WHERE s.v IS NULL), array_agg(s.k) FILTER (WHERE s.v IS NOT NULL),
            array_agg(s.v) FILTER (WHERE s.v IS NOT NULL)
        INTO gone_keys, sum_keys, sum_values
        FROM (
            SELECT a.k, asterism.add_counters_v1(t.v, a.deltas) AS v
            FROM unnest(a_keys, a_deltas) a(k, deltas) LEFT JOIN asterism.p{{number}} t ON t.k = a.k
            OFFSET 0
        ) s;
        d_keys := d_keys || gone_keys;
    END IF;
    IF cardinality(d_keys) > 0 THEN
        DELETE FROM asterism.p{{number}} t WHERE t.k = ANY (d_keys);
    END IF;
    INSERT INTO asterism.p{{number}} (k, v)
        SELECT u.k, u.v FROM unnest(p_keys, p_values) u(k, v)
        UNION ALL
        SELECT u.k, int8send(meta.lsn + u.step) || u.v FROM unnest(v_keys, v_values, v_steps) u(k, v, step)
        UNION ALL
        SELECT u.head || int8send(meta.lsn + u.step) || u.tail, u.v
            FROM unnest(s_heads, s_tails, s_values, s_steps) u(head, tail, v, step)
        UNION ALL
        SELECT u.k, u.v FROM unnest(sum_keys, sum_values) u(k, v)
    ON CONFLICT (k) DO UPDATE SET v = EXCLUDED.v;
    IF meta.journaling THEN
        INSERT INTO asterism.journal SELECT {{number}}, meta.lsn + j.i, j.record
            FROM unnest(j_records) WITH ORDINALITY j(record, i);
    END IF;
    outcome := meta.lsn;
    {_REMEMBER}
    UPDATE asterism.partitions SET lsn = meta.lsn + batches,
        gateways = meta.gateways, tokens = meta.tokens, outcomes = meta.outcomes
    WHERE number = {{number}};
    IF meta.announced THEN
        PERFORM pg_notify('{CHANNEL}', '{{number}}');
    END IF;
    RETURN ARRAY[{DONE}, meta.lsn, meta.journaling::integer];
END $$;

CREATE OR REPLACE FUNCTION asterism.copy_v2_p{{number}}(
    in_gateway bigint, in_token bigint, in_epoch bigint, r_starts bytea[], r_ends bytea[], d_keys bytea[],
    p_keys bytea[], p_values bytea[]
) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    meta record;
    slot integer;
    outcome bigint;
BEGIN
    {_BEGIN_ORDER}
    IF NOT meta.sealed OR meta.epoch <> in_epoch THEN
        RETURN ARRAY[{FENCED}];
    END IF;
    {_DELETE_SPANS}
    IF cardinality(d_keys) > 0 THEN
        DELETE FROM asterism.p{{number}} t WHERE t.k = ANY (d_keys);
    END IF;
    INSERT INTO asterism.p{{number}} (k, v) SELECT u.k, u.v FROM unnest(p_keys, p_values) u(k, v)
        ON CONFLICT (k) DO UPDATE SET v = EXCLUDED.v;
    outcome := meta.lsn;
    {_REMEMBER}
    UPDATE asterism.partitions SET gateways = meta.gateways, tokens = meta.tokens, outcomes = meta.outcomes
    WHERE number = {{number}};
    RETURN ARRAY[{DONE}, meta.lsn];
END $$;
"""


def partition_ddl(number: int) -> str:
    return _PARTITION.format(number=number) + _PARTITION_FUNCTIONS.format(number=number)


def functions_ddl(number: int) -> str:
    return _PARTITION_FUNCTIONS.format(number=number)
