import { connectionsCheck } from "../connections-check.ts";
import type { EngineCheck } from "../engine-driver.ts";
import { isValidSql } from "./database-list.ts";
import { issuerSlots, platformRoles } from "./layout.ts";
import type { Session } from "./session.ts";

/** Sessions and age of transaction ids of a running engine. */
export interface Activity {
  readonly connections: number;
  /** Maximum number of users' connections. */
  readonly limit: number;
  /** Connections reserved for the platform's issuers (`reserved_connections`) since the engine's start. */
  readonly issuerConnections: number;
  /** Oldest transaction that is open or prepared. */
  readonly oldest: OldestTransaction | null;
  /** Age of the oldest transaction id or multixact id of all databases, and the name of its database. */
  readonly idAge: number;
  readonly idDatabase: string;
}

export interface OldestTransaction {
  readonly seconds: number;
  readonly user: string;
  /** Process id; null for a prepared transaction, which has a `gid` instead. */
  readonly pid: number | null;
  readonly gid: string | null;
}

const longTransactionSeconds = 3_600;
/** Number of transaction ids before wraparound (PostgreSQL manual, "Preventing Transaction ID Wraparound Failures"). */
export const idsBeforeWraparound = 2 ** 31;
const idLevels = [
  ["unhealthy", 0.75],
  ["degraded", 0.5],
] as const;

const activitySql = `
  WITH sessions AS (
    SELECT pid, coalesce(usename, usesysid::text) AS "user", xact_start FROM pg_stat_activity
    WHERE backend_type = 'client backend'
      AND usesysid NOT IN (SELECT oid FROM pg_roles WHERE rolname = ANY ($1::text[]))),
  transactions AS (
    SELECT pid, NULL AS gid, "user", xact_start AS began FROM sessions WHERE xact_start IS NOT NULL
    UNION ALL SELECT NULL, gid, owner, prepared FROM pg_prepared_xacts),
  ages AS (SELECT datname, greatest(age(datfrozenxid), mxid_age(datminmxid)) AS age FROM pg_database
    WHERE ${isValidSql})
  SELECT (SELECT count(*)::int FROM sessions) AS connections,
    current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
      - coalesce(current_setting('reserved_connections', true), '0')::int AS "limit",
    coalesce(current_setting('reserved_connections', true), '0')::int AS "issuerConnections",
    (SELECT json_build_object('pid', pid, 'gid', gid, 'user', "user",
        'seconds', extract(epoch FROM clock_timestamp() - began))
      FROM transactions ORDER BY began LIMIT 1) AS oldest,
    (SELECT max(age)::float8 FROM ages) AS "idAge",
    (SELECT datname FROM ages ORDER BY age DESC LIMIT 1) AS "idDatabase"`;

export async function readActivity(session: Session): Promise<Activity> {
  const [row] = await session.rows<Activity>(activitySql, [platformRoles]);
  if (row === undefined) throw new Error("a SELECT without FROM gave no row");
  return row;
}

/** Conditions that users should resolve before they stop the engine or lock out the users of an app. */
export function activityChecks(
  activity: Activity,
  { engine, hasIssuers }: { readonly engine: string; readonly hasIssuers: boolean },
): EngineCheck[] {
  const common = [
    connectionsCheck(engine, activity.connections, activity.limit),
    transactionCheck(activity),
    idCheck(activity),
  ];
  return hasIssuers ? [...common, issuersCheck(activity)] : common;
}

/** `reserved_connections` needs a restart: an engine that was started without it gets it at the next start. */
function issuersCheck({ issuerConnections }: Activity): EngineCheck {
  const name = "sign_in_connections";
  if (issuerConnections >= issuerSlots) return { name, status: "healthy", reason: "" };
  const reason =
    "Users of an app sign in through this database and cannot while all connections are in use. Restart the service: from then on some connections are reserved for sign-ins.";
  return { name, status: "degraded", reason };
}

function transactionCheck({ oldest }: Activity): EngineCheck {
  const name = "long_transaction";
  if (oldest === null || oldest.seconds <= longTransactionSeconds) return { name, status: "healthy", reason: "" };
  const subject =
    oldest.pid === null
      ? `The prepared transaction ${oldest.gid} of ${oldest.user}`
      : `A transaction of ${oldest.user} (pid ${oldest.pid})`;
  // Full hours, so that the reason does not change with each observation.
  const hours = Math.floor(oldest.seconds / 3_600);
  const reason = `${subject} has been open for over ${hours} ${hours === 1 ? "hour" : "hours"}: it retains its locks, and rows deleted since then cannot be vacuumed.`;
  return { name, status: "degraded", reason };
}

function idCheck({ idAge, idDatabase }: Activity): EngineCheck {
  const name = "transaction_ids";
  const share = idAge / idsBeforeWraparound;
  const level = idLevels.find(([, from]) => share >= from);
  if (level === undefined) return { name, status: "healthy", reason: "" };
  const reason = `${Math.floor(share * 100)}% of transaction ids are in use in database ${idDatabase}: end old transactions and prepared transactions, then run VACUUM (FREEZE) there.`;
  return { name, status: level[0], reason };
}
