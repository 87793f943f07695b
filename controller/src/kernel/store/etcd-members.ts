import { inBackground } from "@holdfast/common/background.ts";
import type { Log } from "@holdfast/common/log.ts";
import { createEtcdClient, type EtcdOptions } from "./etcd-client.ts";

/** The members of etcd, according to the cluster's list. */
export interface EtcdMembers {
  /** URLs that the members advertise to clients and to each other; empty before the first response. */
  readonly listeners: readonly string[];
  /** Reads the list now; it is also read once a minute. Throws STORE_UNAVAILABLE. */
  refresh(): Promise<void>;
  close(): void;
}

const pollIntervalMs = 60_000;

export function createEtcdMembers({
  log,
  ...options
}: EtcdOptions & { readonly log: Pick<Log, "error"> }): EtcdMembers {
  const cluster = createEtcdClient(options);
  let listeners: readonly string[] = [];
  const polling = setInterval(() => inBackground(log, "list of etcd's members", refresh()), pollIntervalMs);
  polling.unref();

  async function refresh(): Promise<void> {
    const { members } = await cluster.call((call) => cluster.raw.cluster.memberList({}, call));
    listeners = members.flatMap(({ peerURLs, clientURLs }) => [...peerURLs, ...clientURLs]);
  }

  return {
    get listeners() {
      return listeners;
    },
    refresh,
    close() {
      clearInterval(polling);
      cluster.raw.close();
    },
  };
}
