import { isDeepStrictEqual } from "node:util";
import type { Instance } from "../engine-driver.ts";
import { membersOf } from "../members.ts";
import { call, OpensearchRefusal } from "./api.ts";
import { type ClusterView, readCluster, readShards, recordMembers, type Shard } from "./cluster-view.ts";
import { readUnreplicated, recordUnreplicated, type Unreplicated } from "./heartbeat.ts";
import { readIndexStates } from "./index-states.ts";
import { isVisible, nodeNameOf, ownNumber } from "./layout.ts";

const exclusion = "cluster.routing.allocation.exclude._name";
/** The engine's default of new indices. With 0 of them, those that exist were created by a single member. */
export const defaultReplicas = "cluster.default_number_of_replicas";
const exclusionsPath = "/_cluster/voting_config_exclusions";
const excludedWithin = "2s";

/**
 * Moves all shards away from a member; then it votes no longer, and is no member. One that does not respond has no
 * shards in the cluster any more: it is removed once each shard has a complete copy at another member.
 */
export async function leave(instance: Instance, number: number, signal: AbortSignal): Promise<void> {
  const leaving = instance.spec.peers?.leaving ?? [number];
  await setExclusion(instance, leaving, signal);
  const [cluster, shards] = await Promise.all([readCluster(instance, signal), readShards(instance, signal)]);
  const id = cluster.nodes.find((each) => each.number === number)?.id;
  const staying = cluster.nodes.filter((each) => !leaving.includes(each.number)).map((each) => each.id);
  if (!shards.every((shard) => isIndependentOf(id, shard, staying))) return;
  if (!cluster.excluded.includes(number) || (id !== undefined && cluster.voters.includes(id))) {
    const path = `${exclusionsPath}?node_names=${nodeNameOf(number)}&timeout=${excludedWithin}`;
    await call(instance, { method: "POST", path }, signal);
  }
  await recordMembers(
    instance,
    (cluster.members ?? []).filter((each) => each !== number),
    signal,
  );
}

/** True if the member has no copy of the shard, or if those that stay have as many complete ones as they can. */
function isIndependentOf(
  id: string | undefined,
  { copies, complete, filling }: Shard,
  staying: readonly string[],
): boolean {
  const others = complete.filter((each) => staying.includes(each)).length;
  if (id === undefined || ![...complete, ...filling].includes(id)) return others > 0;
  return others >= Math.min(copies, staying.length);
}

/** Makes this member one of the cluster's. */
export async function admit(instance: Instance, signal: AbortSignal): Promise<void> {
  const { members } = await readCluster(instance, signal);
  const number = ownNumber(instance);
  if (members === undefined || members.includes(number)) return;
  await recordMembers(instance, [...members, number], signal);
}

/**
 * Records the first members, removes what a removal left behind, and gives indices of a cluster that grew from a single
 * member their first replicas. Later, users may have indices without replicas.
 */
export async function balance(instance: Instance, signal: AbortSignal): Promise<void> {
  const cluster = await readCluster(instance, signal);
  const numbers = cluster.nodes.map(({ number }) => number);
  if (cluster.members === undefined) return recordMembers(instance, numbers, signal);
  await endExclusions(instance, cluster, signal);
  if (cluster.members.length < 2 || !cluster.members.every((each) => numbers.includes(each))) return;
  await replicateFirst(instance, signal);
}

const maxReason = 200;

/** Indices that refuse their first replica, such as those with a block, are recorded and tried again by each call. */
async function replicateFirst(instance: Instance, signal: AbortSignal): Promise<void> {
  const isFirst = (await persistentSettings(instance, signal))[defaultReplicas] === "0";
  const before = isFirst ? [] : await readUnreplicated(instance, signal);
  if (!isFirst && before.length === 0) return;
  const indices = (await readIndexStates(instance, signal)).filter(
    ({ name, id, replicas }) => replicas === 0 && isVisible(name) && (isFirst || before.some((each) => each.id === id)),
  );
  const refused: Unreplicated[] = [];
  for (const { id, name } of indices) {
    const reason = await replicate(instance, name, signal);
    if (reason !== undefined) refused.push({ id, name, reason });
  }
  if (!isDeepStrictEqual(refused, before)) await recordUnreplicated(instance, refused, signal);
  // Last: it marks, in the state of the cluster, that the indices have a replica or are recorded.
  if (isFirst) await putSettings(instance, { [defaultReplicas]: "1" }, signal);
}

/** Resolves with the engine's reason if it refused. */
async function replicate(instance: Instance, name: string, signal: AbortSignal): Promise<string | undefined> {
  const path = `/${encodeURIComponent(name)}/_settings`;
  try {
    await call(instance, { method: "PUT", path, body: { index: { number_of_replicas: 1 } } }, signal);
    return undefined;
  } catch (error) {
    if (!(error instanceof OpensearchRefusal) || error.status >= 500) throw error;
    // The index was deleted since.
    return error.status === 404 ? undefined : error.message.slice(0, maxReason);
  }
}

/** Bytes of each member that leaves, which are still to be moved. */
export async function drainsOf(
  instance: Instance,
  { nodes, members = [] }: ClusterView,
  signal: AbortSignal,
): Promise<{ readonly number: number; readonly remainingBytes: number }[]> {
  const leaving = membersOf(instance.spec).filter(
    ({ number }) => members.includes(number) && instance.spec.peers?.leaving.includes(number) === true,
  );
  return Promise.all(
    leaving.map(async ({ number }) => {
      const id = nodes.find((each) => each.number === number)?.id;
      return { number, remainingBytes: id === undefined ? 0 : await bytesAt(instance, id, signal) };
    }),
  );
}

async function bytesAt(instance: Instance, id: string, signal: AbortSignal): Promise<number> {
  const path = `/_nodes/${id}/stats/indices/store?filter_path=nodes.*.indices.store.size_in_bytes`;
  const { nodes = {} } = (await call(instance, { method: "GET", path }, signal)) as {
    readonly nodes?: Readonly<
      Record<string, { readonly indices: { readonly store: { readonly size_in_bytes: number } } }>
    >;
  };
  return Object.values(nodes)[0]?.indices.store.size_in_bytes ?? 0;
}

/** Settings that were stored in the cluster, by name. */
export async function persistentSettings(instance: Instance, signal: AbortSignal): Promise<Record<string, string>> {
  const { persistent } = (await call(
    instance,
    { method: "GET", path: "/_cluster/settings?flat_settings=true" },
    signal,
  )) as { readonly persistent: Record<string, string> };
  return persistent;
}

export async function putSettings(
  instance: Instance,
  settings: Readonly<Record<string, string | null>>,
  signal: AbortSignal,
): Promise<void> {
  await call(instance, { method: "PUT", path: "/_cluster/settings", body: { persistent: settings } }, signal);
}

async function setExclusion(instance: Instance, leaving: readonly number[], signal: AbortSignal): Promise<void> {
  const names = leaving.map(nodeNameOf).join();
  const present = (await persistentSettings(instance, signal))[exclusion] ?? "";
  if (present !== names) await putSettings(instance, { [exclusion]: names === "" ? null : names }, signal);
}

/** A member that was removed may still run until its machine is deleted, and must not get shards or a vote. */
async function endExclusions(instance: Instance, { nodes, excluded }: ClusterView, signal: AbortSignal): Promise<void> {
  const { leaving = [] } = instance.spec.peers ?? {};
  const isPresent = (each: number) => nodes.some(({ number }) => number === each);
  if (leaving.length > 0 || excluded.some(isPresent)) return;
  await setExclusion(instance, [], signal);
  if (excluded.length === 0) return;
  await call(instance, { method: "DELETE", path: `${exclusionsPath}?wait_for_removal=false` }, signal);
}
