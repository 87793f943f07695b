import type { Database } from "#kernel/history/database.ts";

/** Records of erased users and revoked sessions, which are repeated over restored data. Only ids are stored. */
export interface Erasures {
  /** Records an erasure; resolves when it is durable. Idempotent. */
  record(organizationId: string, erasure: Erasure, now: number): Promise<void>;
  /** One page of the erasures since a time, ordered by kind and id, after `after`. */
  since(
    organizationId: string,
    sinceMs: number,
    after: Erasure | undefined,
    limit: number,
  ): Promise<readonly Erasure[]>;
  /** Deletes records of expired sessions, and all records of organizations that are not listed. */
  prune(organizationIds: readonly string[], now: number): Promise<void>;
}

export interface Erasure {
  readonly kind: "user" | "session";
  /** UUID. */
  readonly subject: string;
}

const leastUuid = "00000000-0000-0000-0000-000000000000";
/** Maximum lifetime of a session. */
const sessionRetentionMs = 100 * 86_400_000;

export function createErasures(sql: () => Database): Erasures {
  return {
    async record(organizationId, { kind, subject }, now) {
      await sql().query("insert into auth_erasure values ($1, $2, $3, $4) on conflict do nothing", [
        organizationId,
        kind,
        subject,
        new Date(now).toISOString(),
      ]);
    },
    since: (organizationId, sinceMs, after, limit) =>
      sql().query<{ kind: Erasure["kind"]; subject: string }>(
        `select kind, subject from auth_erasure where organization_id = $1 and erased_at >= $2 and (kind, subject) > ($3, $4::uuid)
         order by kind, subject limit $5`,
        [organizationId, new Date(sinceMs).toISOString(), after?.kind ?? "", after?.subject ?? leastUuid, limit],
      ),
    async prune(organizationIds, now) {
      await sql().query("delete from auth_erasure where kind = 'session' and erased_at < $1", [
        new Date(now - sessionRetentionMs).toISOString(),
      ]);
      if (organizationIds.length > 0)
        await sql().query("delete from auth_erasure where organization_id <> all($1)", [organizationIds]);
    },
  };
}
