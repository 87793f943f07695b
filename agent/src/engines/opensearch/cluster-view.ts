import { lookUp } from "@holdfast/common/look-up.ts";
import type { Instance } from "../engine-driver.ts";
import { call } from "./api.ts";
import { heartbeatIndex, numberOfNode } from "./layout.ts";

/** The cluster's members, as one of them has them. */
export interface ClusterView {
  /** Number of the elected leader; undefined without one. */
  readonly leader: number | undefined;
  /** Members that take part in the cluster now, each with the engine's id of it. */
  readonly nodes: readonly { readonly number: number; readonly id: string }[];
  /** Engine's ids of the members that vote in elections, an odd number of them. */
  readonly voters: readonly string[];
  /** Numbers of the members that are excluded from elections. */
  readonly excluded: readonly number[];
  /** Numbers of the members, also of those that are down; undefined until the first leader recorded them. */
  readonly members: readonly number[] | undefined;
}

/** A shard with the members that have a copy of it. */
export interface Shard {
  readonly index: string;
  /** Number of copies that the index is to have. */
  readonly copies: number;
  /** Engine's ids of the members whose copies are complete. */
  readonly complete: readonly string[];
  /** Engine's ids of the members whose copies move to another member; they are complete too. */
  readonly moving: readonly string[];
  /** Engine's ids of the members whose copies are being filled. */
  readonly filling: readonly string[];
}

interface State {
  readonly cluster_manager_node?: string | null;
  readonly nodes?: Readonly<Record<string, { readonly name: string }>>;
  readonly metadata?: {
    readonly cluster_coordination?: {
      readonly last_committed_config?: readonly string[];
      readonly voting_config_exclusions?: readonly { readonly node_name: string }[];
    };
    readonly indices?: Readonly<
      Record<string, { readonly mappings?: Readonly<Record<string, { readonly _meta?: { members?: number[] } }>> }>
    >;
  };
}

const fields = [
  "cluster_manager_node",
  "nodes.*.name",
  "metadata.cluster_coordination",
  "metadata.indices.*.mappings.*._meta",
].join();

/** Reads the state of this member, which needs no majority. */
export async function readCluster(instance: Instance, signal: AbortSignal): Promise<ClusterView> {
  const path = `/_cluster/state/cluster_manager_node,nodes,metadata/${heartbeatIndex}`;
  const options = `local=true&ignore_unavailable=true&allow_no_indices=true&expand_wildcards=all&filter_path=${fields}`;
  const state = (await call(instance, { method: "GET", path: `${path}?${options}` }, signal)) as State;
  const { nodes = {}, metadata: { cluster_coordination: coordination = {}, indices = {} } = {} } = state;
  const mappings = Object.values(lookUp(indices, heartbeatIndex)?.mappings ?? {});
  const present = Object.entries(nodes).flatMap(([id, { name }]) => {
    const number = numberOfNode(name);
    return number === undefined ? [] : [{ number, id }];
  });
  return {
    leader: present.find(({ id }) => id === state.cluster_manager_node)?.number,
    nodes: present,
    voters: coordination.last_committed_config ?? [],
    excluded: (coordination.voting_config_exclusions ?? []).flatMap(({ node_name: name }) => numberOfNode(name) ?? []),
    members: mappings.find(({ _meta: meta }) => meta?.members !== undefined)?._meta?.members,
  };
}

/** Records the members in the cluster's state, where snapshots do not have them. */
export async function recordMembers(
  instance: Instance,
  members: readonly number[],
  signal: AbortSignal,
): Promise<void> {
  const body = { _meta: { members: members.toSorted((a, b) => a - b) } };
  await call(instance, { method: "PUT", path: `/${heartbeatIndex}/_mapping`, body }, signal);
}

interface Routing {
  readonly routing_table?: {
    readonly indices?: Readonly<
      Record<
        string,
        {
          readonly shards: Readonly<
            Record<string, readonly { readonly state: string; readonly node?: string | null }[]>
          >;
        }
      >
    >;
  };
}

/** Reads where the copies of all shards are. */
export async function readShards(instance: Instance, signal: AbortSignal): Promise<Shard[]> {
  const copy = "routing_table.indices.*.shards.*";
  const path = `/_cluster/state/routing_table?local=true&filter_path=${copy}.state,${copy}.node`;
  const { routing_table: { indices = {} } = {} } = (await call(instance, { method: "GET", path }, signal)) as Routing;
  return Object.entries(indices).flatMap(([index, { shards }]) =>
    Object.values(shards).map((copies) => {
      const inState = (...states: readonly string[]) =>
        copies.flatMap(({ state, node }) => (states.includes(state) && node ? [node] : []));
      return {
        index,
        copies: copies.length,
        complete: inState("STARTED", "RELOCATING"),
        moving: inState("RELOCATING"),
        filling: inState("INITIALIZING"),
      };
    }),
  );
}
