import { connectionsCheck } from "../connections-check.ts";
import type { EngineCheck } from "../engine-driver.ts";
import { isValidSql } from "./database-list.ts";
import { issuerSlots, platformRoles } from "./layout.ts";
import type { Session } from "./session.ts";

/** What sessions and the age of ids say of a running engine. */
export interface Activity {
  readonly connections: number;
  /** Connections that users can have at most. */
  readonly most: number;
  /** Connections that only the platform's issuers can take, while the engine runs as it was started. */
  readonly forIssuers: number;
  /** The oldest transaction that is open or prepared. */
  readonly oldest: OldestTransaction | null;
  /** Age of the oldest transaction id or multixact id of all databases, and the database that has it. */
  readonly idAge: number;
  readonly idDatabase: string;
}

export interface OldestTransaction {
  readonly seconds: number;
  readonly user: string;
  /** Null for a prepared one, which has its name instead. */
  readonly pid: number | null;
  readonly gid: string | null;
}

const longTransactionSeconds = 3_600;
/** Ids that there are before the oldest must be gone. */
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
      - coalesce(current_setting('reserved_connections', true), '0')::int AS most,
    coalesce(current_setting('reserved_connections', true), '0')::int AS "forIssuers",
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

/** Pure: what a user should look after before it stops the engine, or keeps the users of an app out. */
export function activityChecks(activity: Activity, hasIssuers: boolean): EngineCheck[] {
  const usual = [connectionsCheck(activity.connections, activity.most), transactionCheck(activity), idCheck(activity)];
  return hasIssuers ? [...usual, issuersCheck(activity)] : usual;
}

/** An engine that ran before issuers had connections of their own has them from its next start on. */
function issuersCheck({ forIssuers }: Activity): EngineCheck {
  const name = "sign_in_connections";
  if (forIssuers >= issuerSlots) return { name, status: "healthy", reason: "" };
  const reason =
    "Users of an app sign in by this database, and whoever takes all of its connections keeps them out. Restart the service: from then on some are kept for sign-ins.";
  return { name, status: "degraded", reason };
}

function transactionCheck({ oldest }: Activity): EngineCheck {
  const name = "long_transaction";
  if (oldest === null || oldest.seconds <= longTransactionSeconds) return { name, status: "healthy", reason: "" };
  const which =
    oldest.pid === null
      ? `The prepared transaction ${oldest.gid} of ${oldest.user}`
      : `A transaction of ${oldest.user} (pid ${oldest.pid})`;
  // In whole hours, so that the reason is not another one at each look.
  const hours = Math.floor(oldest.seconds / 3_600);
  const reason = `${which} is open for over ${hours} ${hours === 1 ? "hour" : "hours"}: it holds locks, and nothing that was deleted since can be cleaned up.`;
  return { name, status: "degraded", reason };
}

function idCheck({ idAge, idDatabase }: Activity): EngineCheck {
  const name = "transaction_ids";
  const share = idAge / idsBeforeWraparound;
  const level = idLevels.find(([, from]) => share >= from);
  if (level === undefined) return { name, status: "healthy", reason: "" };
  const reason = `${Math.floor(share * 100)}% of transaction ids are used up in database ${idDatabase}: end transactions and prepared transactions that are old, then VACUUM (FREEZE) there.`;
  return { name, status: level[0], reason };
}
