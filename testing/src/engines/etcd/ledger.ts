import { startWriter } from "@holdfast/test/faults/acknowledged-writer.ts";
import { resolveName } from "../../network/dns-query.ts";
import type { ConnectionJson } from "../../api/service-json.ts";
import type { Platform } from "../../platform/platform.ts";
import { callEtcd, decoded, encoded, type EtcdTarget, prefixRange, type RangeReply } from "./api.ts";

const prefix = "ledger/";
const withinMs = 3_000;

/** Connects to a member that a name of the service resolves to, and that responds. */
export async function connectEtcd(
  platform: Platform,
  connection: ConnectionJson,
  name = connection.host,
): Promise<EtcdTarget> {
  const addresses = await resolveName(platform.admin.dns_server, name);
  const targets = addresses.map((address) => ({
    address,
    port: connection.port,
    serverName: name,
    ca: connection.ca_certificate,
  }));
  return Promise.any(
    targets.map(async (target) => {
      await callEtcd(target, "maintenance/status", {}, AbortSignal.timeout(withinMs));
      return target;
    }),
  );
}

/** Writes numbered keys to a service of etcd by its name, and records each that it acknowledged. */
export function writeKeys(platform: Platform, connection: ConnectionJson, signal: AbortSignal) {
  return startWriter<EtcdTarget>({
    connect: () => connectEtcd(platform, connection),
    async write(target, id) {
      const body = { key: encoded(`${prefix}${id}`), value: encoded("x") };
      await callEtcd(target, "kv/put", body, AbortSignal.timeout(withinMs));
    },
    close: async () => undefined,
    async read(target) {
      const range = { ...prefixRange(prefix), keys_only: true };
      const { kvs = [] } = await callEtcd<RangeReply>(target, "kv/range", range, AbortSignal.timeout(60_000));
      return kvs.map(({ key }) => Number(decoded(key).slice(prefix.length)));
    },
    signal,
  });
}

/** Names of the members of the cluster, as a majority of them has them. */
export async function clusterNames(platform: Platform, connection: ConnectionJson): Promise<string[]> {
  const target = await connectEtcd(platform, connection);
  const { members } = await callEtcd<{ members: { name?: string; isLearner?: boolean }[] }>(
    target,
    "cluster/member/list",
    { linearizable: true },
    AbortSignal.timeout(withinMs),
  );
  return members.map(({ name = "", isLearner }) => (isLearner === true ? `${name} joins` : name)).toSorted();
}
