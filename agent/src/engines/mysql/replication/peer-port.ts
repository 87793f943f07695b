import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { connect } from "node:net";
import { createConnection } from "mysql2/promise";
import type { Member } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { Instance } from "../../engine-driver.ts";
import { ownMember, roleOf } from "../../members.ts";
import { authorityFile, certificateFile, keyFile, replicaUser } from "../layout.ts";
import { forwardErrors, type OpenSession, queriesOf } from "../session.ts";

/** Plugins of every member: the copy of data, and commits that wait for a replica. */
export const plugins = {
  clone: "mysql_clone.so",
  rpl_semi_sync_source: "semisync_source.so",
  rpl_semi_sync_replica: "semisync_replica.so",
} as const;

/** Value of the option `plugin_load`. */
export const pluginList = Object.entries(plugins)
  .map(([name, library]) => `${name}=${library}`)
  .join(";");

/** Peer port, of a front: other members connect to it on the private address, each with its certificate. */
export function peerPort({ spec }: Pick<Instance, "spec">): number {
  return spec.port + 10_000;
}

/** True for a member of a service that has or had replicas. */
export function hasPeers({ spec }: Pick<Instance, "spec">): boolean {
  return spec.replication !== undefined;
}

/** Password of the members' accounts. Replication takes at most 32 characters. */
export function peerPassword({ spec }: Pick<Instance, "spec">): string {
  const secret = spec.replication?.secret ?? "";
  return createHash("sha256").update(secret).digest("base64url").slice(0, 32);
}

/** True if the primary's commits wait for this replica, or for one of several. */
export function isSyncReplica(instance: Instance): boolean {
  const member = ownMember(instance);
  return member !== undefined && instance.spec.replication?.syncNumbers.includes(member.number) === true;
}

/** True if commits of this primary wait for a replica. */
export function waitsForReplica({ spec }: Pick<Instance, "spec">): boolean {
  return roleOf(spec) === "primary" && (spec.replication?.syncNumbers.length ?? 0) > 0;
}

/** Number of received transactions after which the log is synced to the disk. */
export function relayLogSync({ spec }: Pick<Instance, "spec">): string {
  return (spec.replication?.syncNumbers.length ?? 0) > 0 ? "1" : "10000";
}

/** Settings of a member at its start, in any role. Only `becomePrimary` lets it accept writes. */
export function replicationSettings(instance: Instance): [string, string][] {
  const { spec } = instance;
  const common: [string, string][] = [
    ["plugin_load", pluginList],
    ["server_id", String(ownMember(instance)?.number ?? 1)],
    // Members connect through a front, like users.
    ["skip_networking", "ON"],
    ["skip_name_resolve", "ON"],
    ["skip_replica_start", "ON"],
    ["relay_log", "relay"],
    // Received transactions survive a restart: commits may have been acknowledged because of them.
    ["relay_log_recovery", "OFF"],
    ["replica_net_timeout", "5"],
  ];
  if (spec.replication === undefined) return common;
  return [
    ...common,
    ["read_only", "ON"],
    ["super_read_only", "ON"],
    ["event_scheduler", "OFF"],
    ["sync_relay_log", relayLogSync(instance)],
    // On a replica it would delay the apply of received log; `becomePrimary` turns it on.
    ["rpl_semi_sync_source_enabled", "OFF"],
    // Only the controller stops the wait for a replica, by other settings.
    ["rpl_semi_sync_source_timeout", "4294967295"],
    ["rpl_semi_sync_source_wait_no_replica", "ON"],
  ];
}

/** Opens a session on another member, whose certificate has to name it. */
export async function openPeerSession(
  instance: Instance,
  { hostname, address }: Pick<Member, "hostname" | "address">,
  signal: AbortSignal,
): Promise<OpenSession> {
  const [ca, cert, key] = await Promise.all(
    [authorityFile, certificateFile, keyFile].map((fileOf) => readFile(fileOf(instance))),
  );
  signal.throwIfAborted();
  // The member's front admits only this address.
  const stream = connect({ host: address, port: peerPort(instance), localAddress: instance.spec.address });
  const abort = () => stream.destroy(signal.reason as Error);
  signal.addEventListener("abort", abort, { once: true });
  stream.once("close", () => signal.removeEventListener("abort", abort));
  const connection = await createConnection({
    host: hostname,
    stream,
    user: replicaUser,
    password: peerPassword(instance),
    ssl: { ca, cert, key, verifyIdentity: true, rejectUnauthorized: true, minVersion: "TLSv1.2" } as object,
    supportBigNumbers: true,
    bigNumberStrings: true,
    dateStrings: true,
  }).catch((error: unknown) => {
    stream.destroy();
    throw error;
  });
  forwardErrors(connection);
  return { rows: queriesOf(connection), close: () => connection.destroy() };
}
