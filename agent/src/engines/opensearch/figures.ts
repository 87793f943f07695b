import { lookUp } from "@holdfast/common/look-up.ts";
import type { Instance } from "../engine-driver.ts";
import { call } from "./api.ts";
import { heartbeatIndex } from "./layout.ts";

/** Health of the cluster as this member has it. */
export interface ClusterHealth {
  readonly status: "green" | "yellow" | "red";
  readonly hasLeader: boolean;
  readonly unassignedShards: number;
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

/** Bytes of all shards in the cluster, each counted once. */
export async function primaryBytes(instance: Instance, signal: AbortSignal): Promise<number> {
  const path = "/_stats/store?expand_wildcards=all&filter_path=_all.primaries.store.size_in_bytes";
  const { _all: all } = (await call(instance, { method: "GET", path }, signal)) as {
    readonly _all?: { readonly primaries?: Operations };
  };
  return all?.primaries?.store?.size_in_bytes ?? 0;
}

interface NodeStats {
  readonly indices: Operations & { readonly indices?: Readonly<Record<string, Operations>> };
  readonly jvm: { readonly mem: { readonly heap_used_percent: number } };
}

interface NodeInfo {
  readonly jvm: { readonly start_time_in_millis: number };
}
