import type { Instance } from "../engine-driver.ts";
import { call } from "./api.ts";
import { heartbeatIndex } from "./layout.ts";

/** Health of the cluster as this member has it. */
export interface ClusterHealth {
  readonly status: "green" | "yellow" | "red";
  readonly hasLeader: boolean;
  readonly unassignedShards: number;
}

export async function readHealth(instance: Instance, signal: AbortSignal): Promise<ClusterHealth> {
  const answer = (await call(instance, { method: "GET", path: "/_cluster/health?local=true" }, signal)) as {
    status: ClusterHealth["status"];
    discovered_cluster_manager: boolean;
    unassigned_shards: number;
  };
  return {
    status: answer.status,
    hasLeader: answer.discovered_cluster_manager,
    unassignedShards: answer.unassigned_shards,
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
  const stats = "/_nodes/_local/stats/indices,jvm/indexing,search,store";
  const fields = "filter_path=nodes.*.indices,nodes.*.jvm.mem.heap_used_percent,nodes.*.jvm.timestamp";
  const [nodes, started, own] = await Promise.all([
    call(instance, { method: "GET", path: `${stats}?${fields}` }, signal),
    call(instance, { method: "GET", path: "/_nodes/_local/jvm?filter_path=nodes.*.jvm.start_time_in_millis" }, signal),
    call(instance, { method: "GET", path: `/${heartbeatIndex}/_stats/indexing,search?filter_path=_all.total` }, signal),
  ]);
  const [node] = Object.values((nodes as { nodes: Record<string, NodeStats> }).nodes);
  const [info] = Object.values((started as { nodes: Record<string, NodeInfo> }).nodes);
  if (node === undefined || info === undefined) throw new Error("the member did not report its figures");
  const { total = {} } = (own as { _all?: { total?: Operations } })._all ?? {};
  const ofUsers = (all = 0, platform = 0) => Math.max(all - platform, 0);
  return {
    dataBytes: node.indices.store?.size_in_bytes ?? 0,
    indexed: ofUsers(node.indices.indexing?.index_total, total.indexing?.index_total),
    searches: ofUsers(node.indices.search?.query_total, total.search?.query_total),
    heapPercent: node.jvm.mem.heap_used_percent,
    startedMs: info.jvm.start_time_in_millis,
  };
}

interface NodeStats {
  readonly indices: Operations;
  readonly jvm: { readonly mem: { readonly heap_used_percent: number } };
}

interface NodeInfo {
  readonly jvm: { readonly start_time_in_millis: number };
}
