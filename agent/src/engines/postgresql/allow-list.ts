import { setTimeout as sleep } from "node:timers/promises";
import type { InstanceSpec } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { Instance } from "../instance.ts";
import { type Session, withSession } from "./session.ts";
import { platform, replicaRole } from "./layout.ts";

const pollIntervalMs = 20;

/** Sessions that the allow-list forbids; `$1` to `$4` are the values of `listOf`. */
const forbidden = `client_addr IS NOT NULL AND usename <> ALL ($2::text[])
  AND NOT EXISTS (SELECT 1 FROM unnest($1::text[]) AS allowed
    WHERE client_addr <<= allowed::inet AND usename <> ALL ($3::text[]))
  AND NOT EXISTS (SELECT 1 FROM unnest($3::text[], $4::text[]) AS platform_entries (role, source)
    WHERE usename = role AND client_addr <<= source::inet)`;

type AllowList = Pick<InstanceSpec, "allowedCidrs" | "platformAccess">;

function allowListValues({ allowedCidrs, platformAccess }: AllowList): unknown[] {
  const sources = platformAccess.flatMap(({ role, from }) => from.map((cidr) => ({ role, cidr })));
  return [allowedCidrs, [platform, replicaRole], sources.map(({ role }) => role), sources.map(({ cidr }) => cidr)];
}

/**
 * Ends every client session from a forbidden address. A platform role is allowed from its own networks only; members
 * authenticate by certificate and are allowed from any address. A session without a user is still authenticating, and
 * the next call ends it.
 */
export async function endForbiddenSessions(session: Session, list: AllowList): Promise<void> {
  await session.rows(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${forbidden}`,
    allowListValues(list),
  );
}

/**
 * Ends forbidden sessions until none remains: a session that is terminated during its commit still acknowledges it. The
 * pooler has already closed its clients' connections.
 */
export async function untilNoClients(instance: Instance, signal: AbortSignal): Promise<void> {
  const remaining = `SELECT 1 FROM pg_stat_activity WHERE client_addr IS NOT NULL AND (usename IS NULL OR ${forbidden})`;
  await withSession(instance, signal, async (session) => {
    for (;;) {
      await endForbiddenSessions(session, instance.spec);
      if ((await session.rows(remaining, allowListValues(instance.spec))).length === 0) return;
      await sleep(pollIntervalMs, undefined, { signal });
    }
  });
}
