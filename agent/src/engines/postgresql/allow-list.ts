import type { InstanceSpec } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { Session } from "./session.ts";
import { platform } from "./layout.ts";
import { replicaRole } from "./replication/members.ts";

/**
 * Ends every session of a client from an address that is not on the list, or not one of its own role of the platform. Members authenticate by their certificates,
 * from any address. A session that has no user yet is still authenticating: the next look ends it.
 */
export async function endForbiddenSessions(
  session: Session,
  { allowedCidrs, platformAccess }: Pick<InstanceSpec, "allowedCidrs" | "platformAccess">,
): Promise<void> {
  const sources = platformAccess.flatMap(({ role, from }) => from.map((cidr) => ({ role, cidr })));
  await session.rows(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE client_addr IS NOT NULL AND usename <> ALL ($2::text[])
       AND NOT EXISTS (SELECT 1 FROM unnest($1::text[]) AS allowed
         WHERE client_addr <<= allowed::inet AND usename <> ALL ($3::text[]))
       AND NOT EXISTS (SELECT 1 FROM unnest($3::text[], $4::text[]) AS ours (role, source)
         WHERE usename = role AND client_addr <<= source::inet)`,
    [allowedCidrs, [platform, replicaRole], sources.map(({ role }) => role), sources.map(({ cidr }) => cidr)],
  );
}
