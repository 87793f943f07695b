import type { Database } from "#kernel/history/database.ts";

/** What was asked to be gone for good, of the users of an organization's apps. Ids and nothing else. */
export interface Erasures {
  /** Resolves when it is kept; the same again changes nothing. */
  keep(organizationId: string, gone: Gone, now: number): Promise<void>;
  /** One page of those kept since then, in the order of their ids, behind `after`. */
  since(organizationId: string, sinceMs: number, after: Gone | undefined, limit: number): Promise<readonly Gone[]>;
  /** Deletes sessions that are over anyhow, and all of organizations that are gone; these are those that are there. */
  keepOnly(organizationIds: readonly string[], now: number): Promise<void>;
}

export interface Gone {
  readonly kind: "user" | "session";
  /** UUID. */
  readonly subject: string;
}

const leastUuid = "00000000-0000-0000-0000-000000000000";
/** No session lives longer. */
const sessionKeptMs = 100 * 86_400_000;

export function createErasures(sql: () => Database): Erasures {
  return {
    async keep(organizationId, { kind, subject }, now) {
      await sql().query("insert into auth_erasure values ($1, $2, $3, $4) on conflict do nothing", [
        organizationId,
        kind,
        subject,
        new Date(now).toISOString(),
      ]);
    },
    since: (organizationId, sinceMs, after, limit) =>
      sql().query<{ kind: Gone["kind"]; subject: string }>(
        `select kind, subject from auth_erasure where organization_id = $1 and erased_at >= $2 and (kind, subject) > ($3, $4::uuid)
         order by kind, subject limit $5`,
        [organizationId, new Date(sinceMs).toISOString(), after?.kind ?? "", after?.subject ?? leastUuid, limit],
      ),
    async keepOnly(organizationIds, now) {
      await sql().query("delete from auth_erasure where kind = 'session' and erased_at < $1", [
        new Date(now - sessionKeptMs).toISOString(),
      ]);
      if (organizationIds.length > 0)
        await sql().query("delete from auth_erasure where organization_id <> all($1)", [organizationIds]);
    },
  };
}
