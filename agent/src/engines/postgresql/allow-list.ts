import { setTimeout as sleep } from "node:timers/promises";
import type { InstanceSpec } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { Instance } from "../instance.ts";
import { type Session, withSession } from "./session.ts";
import { platform } from "./layout.ts";
import { replicaRole } from "./replication/members.ts";

const lookEveryMs = 20;

/** Sessions of the list's addresses and roles; `$1` to `$4` are those of `listOf`. */
const forbidden = `client_addr IS NOT NULL AND usename <> ALL ($2::text[])
  AND NOT EXISTS (SELECT 1 FROM unnest($1::text[]) AS allowed
    WHERE client_addr <<= allowed::inet AND usename <> ALL ($3::text[]))
  AND NOT EXISTS (SELECT 1 FROM unnest($3::text[], $4::text[]) AS ours (role, source)
    WHERE usename = role AND client_addr <<= source::inet)`;

type AllowList = Pick<InstanceSpec, "allowedCidrs" | "platformAccess">;

function listOf({ allowedCidrs, platformAccess }: AllowList): unknown[] {
  const sources = platformAccess.flatMap(({ role, from }) => from.map((cidr) => ({ role, cidr })));
  return [allowedCidrs, [platform, replicaRole], sources.map(({ role }) => role), sources.map(({ cidr }) => cidr)];
}

/**
 * Ends every session of a client from an address that is not on the list, or not one of its own role of the platform. Members authenticate by their certificates,
 * from any address. A session that has no user yet is still authenticating: the next look ends it.
 */
export async function endForbiddenSessions(session: Session, list: AllowList): Promise<void> {
  await session.rows(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${forbidden}`, listOf(list));
}

/**
 * Ends forbidden sessions until none is left: one that is told to end while it commits still acknowledges that. Sessions of the
 * pooler acknowledge to clients that the pooler has dropped.
 */
export async function untilNoClients(instance: Instance, signal: AbortSignal): Promise<void> {
  const left = `SELECT 1 FROM pg_stat_activity WHERE client_addr IS NOT NULL AND (usename IS NULL OR ${forbidden})`;
  await withSession(instance, signal, async (session) => {
    for (;;) {
      await endForbiddenSessions(session, instance.spec);
      if ((await session.rows(left, listOf(instance.spec))).length === 0) return;
      await sleep(lookEveryMs, undefined, { signal });
    }
  });
}
