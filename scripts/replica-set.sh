#!/bin/sh
# A node of a fleet as a replica set: one PostgreSQL primary, its standbys, and a quorum that a commit waits for.
#
#   replica-set.sh primary DIR PORT                  make and start a primary
#   replica-set.sh standby DIR PORT NAME PRIMARY     make and start a standby of PRIMARY (HOST:PORT)
#   replica-set.sh quorum  PORT NAME...              commits wait for any one of the named standbys
#   replica-set.sh furthest HOST:PORT...             which standby has the most: the one to promote
#   replica-set.sh promote DIR                       make a standby the primary, when the old one is gone
#   replica-set.sh dsn     HOST:PORT...              the node's address for fleet.toml
#
# Run it as the user that PostgreSQL runs as, with initdb and pg_ctl on the PATH, on each machine in turn. Settings
# from the environment: PGUSER_ASTERISM (asterism), PGDATABASE_ASTERISM (asterism), LISTEN (127.0.0.1), ALLOWED
# (127.0.0.1/32), the network of gateways and standbys, and WAIT_SECONDS (60), how long the verb quorum waits for a
# standby. Passwords are yours to set: ALTER ROLE ... PASSWORD, then another method than trust in pg_hba.conf.
set -eu

user=${PGUSER_ASTERISM:-asterism}
database=${PGDATABASE_ASTERISM:-asterism}
listen=${LISTEN:-127.0.0.1}
allowed=${ALLOWED:-127.0.0.1/32}
wait_seconds=${WAIT_SECONDS:-60}

fail() {
    echo "replica-set.sh: $*" >&2
    exit 1
}

usage() {
    sed -n '2,11s/^# \{0,1\}//p' "$0" >&2
    exit 2
}

sql() { # PORT STATEMENT
    psql -X -q -t -A -v ON_ERROR_STOP=1 -h "$listen" -p "$1" -U "$user" -d postgres -c "$2"
}

start() { # DIR PORT
    pg_ctl -D "$1" -l "$1/server.log" -w -o "-p $2 -k $1" start >/dev/null || fail "see $1/server.log"
}

primary() {
    dir=$1 port=$2
    [ ! -e "$dir/PG_VERSION" ] || fail "$dir is a database already"
    initdb -D "$dir" -U "$user" -A trust -E UTF8 --locale=C >/dev/null
    cat >>"$dir/postgresql.conf" <<SETTINGS
listen_addresses = '$listen'
wal_level = replica
max_wal_senders = 10
max_connections = 200
hot_standby = on
# A standby that was away finds what it missed for as long as this.
wal_keep_size = '1GB'
# A commit is answered when a quorum has it on disk; which quorum: see synchronous_standby_names.
synchronous_commit = on
SETTINGS
    printf 'host all %s %s trust\nhost replication %s %s trust\n' "$user" "$allowed" "$user" "$allowed" \
        >>"$dir/pg_hba.conf"
    start "$dir" "$port"
    sql "$port" "CREATE DATABASE $database"
    echo "The primary listens on $listen:$port."
}

standby() {
    dir=$1 port=$2 name=$3 from=$4
    [ ! -e "$dir/PG_VERSION" ] || fail "$dir is a database already"
    pg_basebackup -D "$dir" -R -X stream -c fast -d "host=${from%:*} port=${from##*:} user=$user application_name=$name"
    # Under this name the primary knows it; it is also what the quorum names.
    echo "cluster_name = '$name'" >>"$dir/postgresql.auto.conf"
    start "$dir" "$port"
    echo "The standby $name follows $from and listens on $listen:$port."
}

quorum() {
    port=$1
    shift
    names=$(echo "$*" | sed 's/ /, /g')
    sql "$port" "ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 ($names)'"
    sql "$port" "SELECT pg_reload_conf()" >/dev/null
    # The setting is in force for a standby when the process that sends to it has read it, so wait for that. A name
    # that no standby has would make every commit wait for ever: say so.
    for name in "$@"; do
        tries=0
        until [ "$(state_of "$port" "$name")" = quorum ]; do
            tries=$((tries + 1))
            [ "$tries" -lt "$wait_seconds" ] || fail "the quorum is set, but no standby named $name follows yet"
            sleep 1
        done
    done
    echo "Commits on port $port wait for any one of: $names."
}

state_of() { # PORT NAME
    sql "$1" "SELECT sync_state FROM pg_stat_replication WHERE application_name = '$2' AND state = 'streaming'"
}

furthest() {
    # Any one of the quorum has every acknowledged commit, so the one that is furthest has them all.
    for at in "$@"; do
        lsn=$(psql -X -q -t -A -h "${at%:*}" -p "${at##*:}" -U "$user" -d postgres \
            -c "SELECT pg_last_wal_receive_lsn() - '0/0'") || continue
        echo "$lsn $at"
    done | sort -n | tail -n 1 | cut -d ' ' -f 2
}

promote() {
    pg_ctl -D "$1" -w promote >/dev/null
    echo "$1 is the primary now; gateways find it by themselves."
}

dsn() {
    hosts=$(echo "$*" | sed 's/ /,/g')
    echo "postgresql://$user@$hosts/$database?target_session_attrs=read-write"
}

[ $# -ge 2 ] || usage
verb=$1
shift
case $verb/$# in
    primary/2) primary "$@" ;;
    standby/4) standby "$@" ;;
    quorum/1) usage ;;
    quorum/*) quorum "$@" ;;
    furthest/*) furthest "$@" ;;
    promote/1) promote "$@" ;;
    dsn/*) dsn "$@" ;;
    *) usage ;;
esac
