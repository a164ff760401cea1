"""What a load refuses to begin with: whoever may lose something is named beforehand."""

from __future__ import annotations

from typing import Any

from cdc_lakehouse.errors import UserError

SCHEMA = "datalake"
REPLICATION_ROLE = "debezium"

# Everything that `drop schema … cascade` would take, and of it what lies outside the
# schema. A dependency is 'a' or 'i' where the object is part of what it depends on, such as
# a constraint of its table; a drop of a part that is 'i' drops the whole: a view by its
# rule. What pg_toast holds is part of a table, too.
DEPENDENTS_OUTSIDE = """
    with recursive

    contents as (
        select pg_depend.classid, pg_depend.objid, pg_depend.objsubid
        from pg_depend
        join pg_namespace on pg_depend.refobjid = pg_namespace.oid
        where pg_depend.refclassid = 'pg_namespace'::regclass and nspname = %(schema)s
    ),

    inside as (
        select * from contents
        union
        select pg_depend.classid, pg_depend.objid, pg_depend.objsubid
        from inside
        join pg_depend
            on inside.classid = pg_depend.refclassid and inside.objid = pg_depend.refobjid
        where
            pg_depend.deptype in ('a', 'i')
            and inside.objsubid in (0, pg_depend.refobjsubid)
    ),

    dropped as (
        select * from contents
        union
        select next.* from dropped
        cross join lateral (
            select classid, objid, objsubid from pg_depend
            where
                refclassid = dropped.classid
                and refobjid = dropped.objid
                and dropped.objsubid in (0, refobjsubid)
            union all
            select refclassid, refobjid, refobjsubid from pg_depend
            where
                classid = dropped.classid
                and objid = dropped.objid
                and objsubid = dropped.objsubid
                and deptype = 'i'
        ) as next
    )

    select pg_describe_object(classid, objid, objsubid)
    from dropped
    cross join lateral pg_identify_object(classid, objid, objsubid) as identity
    where
        identity.schema is distinct from 'pg_toast'
        and (
            identity.schema <> %(schema)s
            or not exists (
                select from inside
                where
                    inside.classid = dropped.classid
                    and inside.objid = dropped.objid
                    and inside.objsubid in (0, dropped.objsubid)
            )
        )
        and not exists (
            select from pg_depend
            where
                pg_depend.classid = dropped.classid
                and pg_depend.objid = dropped.objid
                and pg_depend.objsubid = dropped.objsubid
                and pg_depend.deptype = 'i'
        )
    order by 1
"""

LOCK_HOLDERS = """
    select distinct
        case
            when pg_locks.pid is null then 'a prepared transaction'
            else format(
                'process %%s (user %%s, application "%%s", %%s)',
                pg_locks.pid, usename, application_name, coalesce(state, backend_type)
            )
        end
    from pg_locks
    join pg_class on pg_locks.relation = pg_class.oid
    join pg_namespace on pg_class.relnamespace = pg_namespace.oid
    left join pg_stat_activity on pg_locks.pid = pg_stat_activity.pid
    where
        nspname = %(schema)s
        and pg_locks.granted
        and pg_locks.database = (
            select oid from pg_database where datname = current_database()
        )
        and pg_locks.pid is distinct from pg_backend_pid()
    order by 1
"""


def require_server(cursor: Any) -> None:
    """Refuse a server whose changes cannot be captured, or whose role may do too much.

    Raises:
        UserError: it has to be changed first; how is said.
    """
    cursor.execute("show wal_level")
    (wal_level,) = cursor.fetchone()
    if wal_level != "logical":
        raise UserError(
            f"the server's wal_level is {wal_level}, and changes are captured only where it"
            " is logical: run ALTER SYSTEM SET wal_level = logical, restart the server"
            " (on RDS: rds.logical_replication = 1 in the parameter group, and a reboot),"
            " then load again"
        )
    cursor.execute(
        "select rolsuper, rolcreatedb, rolcreaterole, rolbypassrls from pg_roles"
        " where rolname = %s",
        (REPLICATION_ROLE,),
    )
    attributes = ("SUPERUSER", "CREATEDB", "CREATEROLE", "BYPASSRLS")
    for row in cursor:
        held = [name for name, holds in zip(attributes, row, strict=True) if holds]
        if held:
            raise UserError(
                f"the role {REPLICATION_ROLE} is there with {', '.join(held)}, and it is"
                f" only to read: run ALTER ROLE {REPLICATION_ROLE}"
                f" {' '.join(f'NO{name}' for name in held)}, then load again;"
                " nothing was changed"
            )


def require_database(cursor: Any) -> None:
    """Refuse a database where others would lose what a load cannot make again.

    A slot decodes old changes with the catalog of their time. It never gets past those of
    a load, made before the load's publication was there, and keeps its WAL for ever.

    Raises:
        UserError: a slot reads this database, or objects elsewhere need the schema's.
    """
    cursor.execute(
        "select slot_name::text from pg_replication_slots"
        " where database = current_database() order by slot_name"
    )
    slots = [name for (name,) in cursor]
    if slots:
        raise UserError(
            f"a replication slot reads this database: {', '.join(slots)}; it could not go"
            " on after a load. Remove its connector with the connector's offsets, drop the"
            " slot (select pg_drop_replication_slot('NAME')), load, and register the"
            " connector again; nothing was changed"
        )
    cursor.execute(DEPENDENTS_OUTSIDE, {"schema": SCHEMA})
    dependents = [name for (name,) in cursor]
    if dependents:
        raise UserError(
            f"outside the schema {SCHEMA}, these need it and would go with it:"
            f" {', '.join(dependents)}; drop them, then load again; nothing was changed"
        )


def lock_holders(cursor: Any) -> list[str]:
    """The sessions that have a lock on a table of the schema, in words."""
    cursor.execute(LOCK_HOLDERS, {"schema": SCHEMA})
    return [name for (name,) in cursor]
