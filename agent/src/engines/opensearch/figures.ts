import { lookUp } from "@holdfast/common/look-up.ts";
import type { Instance } from "../engine-driver.ts";
import { call } from "./api.ts";
import { heartbeatIndex } from "./layout.ts";

/** Health of the cluster as this member has it. */
export interface ClusterHealth {
  readonly status: "green" | "yellow" | "red";
  readonly hasLeader: boolean;
  readonly unassignedShards: number;
  /** Copies that are filled. */
  readonly fillingShards: number;
  /** Copies that are filled, or move to another member. */
  readonly unsettledShards: number;
}

export async function readHealth(instance: Instance, signal: AbortSignal): Promise<ClusterHealth> {
  const answer = (await call(instance, { method: "GET", path: "/_cluster/health?local=true" }, signal)) as {
    status: ClusterHealth["status"];
    discovered_cluster_manager: boolean;
    unassigned_shards: number;
    initializing_shards: number;
    relocating_shards: number;
  };
  return {
    status: answer.status,
    hasLeader: answer.discovered_cluster_manager,
    unassignedShards: answer.unassigned_shards,
    fillingShards: answer.initializing_shards,
    unsettledShards: answer.initializing_shards + answer.relocating_shards,
  };
}

/** Figures of this member's process. Counters only grow until it ends. */
export interface MemberFigures {
  readonly dataBytes: number;
  readonly indexed: number;
  readonly searches: number;
  readonly heapPercent: number;
  /** Start of the process, milliseconds since 1970. */
  readonly startedMs: number;
}

interface Operations {
  readonly indexing?: { readonly index_total?: number };
  readonly search?: { readonly query_total?: number };
  readonly store?: { readonly size_in_bytes?: number };
}

/** Without the documents that the platform itself writes. */
export async function readFigures(instance: Instance, signal: AbortSignal): Promise<MemberFigures> {
  const stats = "/_nodes/_local/stats/indices,jvm/indexing,search,store?level=indices";
  const operations = ["indexing", "search", "store"];
  // A dot in a name would separate two fields.
  const own = `nodes.*.indices.indices.${heartbeatIndex.replaceAll(".", "*")}`;
  const fields = [...operations.map((name) => `nodes.*.indices.${name}`), own, "nodes.*.jvm.mem.heap_used_percent"];
  const [nodes, started] = await Promise.all([
    call(instance, { method: "GET", path: `${stats}&filter_path=${fields.join()}` }, signal),
    call(instance, { method: "GET", path: "/_nodes/_local/jvm?filter_path=nodes.*.jvm.start_time_in_millis" }, signal),
  ]);
  const [node] = Object.values((nodes as { nodes: Record<string, NodeStats> }).nodes);
  const [info] = Object.values((started as { nodes: Record<string, NodeInfo> }).nodes);
  if (node === undefined || info === undefined) throw new Error("the member did not report its figures");
  const total = lookUp(node.indices.indices ?? {}, heartbeatIndex) ?? {};
  const ofUsers = (all = 0, platform = 0) => Math.max(all - platform, 0);
  return {
    dataBytes: node.indices.store?.size_in_bytes ?? 0,
    indexed: ofUsers(node.indices.indexing?.index_total, total.indexing?.index_total),
    searches: ofUsers(node.indices.search?.query_total, total.search?.query_total),
    heapPercent: node.jvm.mem.heap_used_percent,
    startedMs: info.jvm.start_time_in_millis,
  };
}

/** Figures of one copy of a shard that is complete. */
export interface ShardCopy {
  readonly index: string;
  readonly isPrimary: boolean;
  readonly documents: number;
  readonly bytes: number;
}

interface CopyStats {
  readonly routing: { readonly state: string; readonly primary: boolean };
  readonly docs?: { readonly count?: number };
  readonly store?: { readonly size_in_bytes?: number };
}

const copyFields = ["routing.state", "routing.primary", "docs.count", "store.size_in_bytes"]
  .map((field) => `nodes.*.indices.shards.*.*.${field}`)
  .join();

/**
 * Complete copies of all shards, also of those of closed and hidden indices. It asks the members: the engine refuses
 * calls about indices (`_stats`, `_cat/indices`, `_cat/shards`) if one of them is closed or has a block.
 */
export async function readCopies(instance: Instance, signal: AbortSignal): Promise<ShardCopy[]> {
  const path = `/_nodes/stats/indices/docs,store?level=shards&filter_path=${copyFields}`;
  const { nodes = {} } = (await call(instance, { method: "GET", path }, signal)) as {
    readonly nodes?: Readonly<
      Record<
        string,
        {
          readonly indices: {
            readonly shards: Readonly<Record<string, readonly Readonly<Record<string, CopyStats>>[]>>;
          };
        }
      >
    >;
  };
  return Object.values(nodes).flatMap(({ indices: { shards } }) =>
    Object.entries(shards).flatMap(([index, copies]) =>
      copies
        .flatMap((copy) => Object.values(copy))
        .filter(({ routing }) => routing.state === "STARTED" || routing.state === "RELOCATING")
        .map(({ routing, docs, store }) => ({
          index,
          isPrimary: routing.primary,
          documents: docs?.count ?? 0,
          bytes: store?.size_in_bytes ?? 0,
        })),
    ),
  );
}

/** Bytes of all shards in the cluster, each counted once. */
export async function primaryBytes(instance: Instance, signal: AbortSignal): Promise<number> {
  const copies = await readCopies(instance, signal);
  return copies.reduce((sum, { isPrimary, bytes }) => sum + (isPrimary ? bytes : 0), 0);
}

interface NodeStats {
  readonly indices: Operations & { readonly indices?: Readonly<Record<string, Operations>> };
  readonly jvm: { readonly mem: { readonly heap_used_percent: number } };
}

interface NodeInfo {
  readonly jvm: { readonly start_time_in_millis: number };
}
