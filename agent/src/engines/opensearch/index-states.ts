import { lookUp } from "@holdfast/common/look-up.ts";
import type { Instance } from "../engine-driver.ts";
import { call } from "./api.ts";

/** An index in the cluster's state, which the engine returns in spite of the index's blocks. */
export interface IndexState {
  readonly name: string;
  /** Differs from that of a deleted index of the same name. */
  readonly id: string;
  readonly isOpen: boolean;
  readonly health: string;
  readonly shards: number;
  readonly replicas: number;
}

interface Metadata {
  readonly state: string;
  readonly settings: {
    readonly index: { readonly uuid: string; readonly number_of_shards: string; readonly number_of_replicas: string };
  };
}

const settings = ["uuid", "number_of_shards", "number_of_replicas"].map((name) => `settings.index.${name}`);
const fields = ["state", ...settings].map((name) => `metadata.indices.*.${name}`).join();

/** All indices, also closed and hidden ones. */
export async function readIndexStates(instance: Instance, signal: AbortSignal): Promise<IndexState[]> {
  const statePath = `/_cluster/state/metadata?filter_path=${fields}`;
  const healthPath = "/_cluster/health?level=indices&expand_wildcards=all&filter_path=indices.*.status";
  const [state, health] = await Promise.all([
    call(instance, { method: "GET", path: statePath }, signal),
    call(instance, { method: "GET", path: healthPath }, signal),
  ]);
  const { metadata: { indices = {} } = {} } = state as {
    readonly metadata?: { readonly indices?: Readonly<Record<string, Metadata>> };
  };
  const { indices: statuses = {} } = health as {
    readonly indices?: Readonly<Record<string, { readonly status: string }>>;
  };
  return Object.entries(indices).map(
    ([
      name,
      {
        state: condition,
        settings: { index },
      },
    ]) => ({
      name,
      id: index.uuid,
      isOpen: condition === "open",
      health: lookUp(statuses, name)?.status ?? "",
      shards: Number(index.number_of_shards),
      replicas: Number(index.number_of_replicas),
    }),
  );
}
