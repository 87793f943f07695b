import { randomUUID } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { systemClock } from "@holdfast/common/clock.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { defaultLimits } from "@holdfast/controller/fleet/fleet-limits.ts";
import { createRenewedIdentity } from "@holdfast/mtls/renewed-identity.ts";
import { createCollection } from "@holdfast/controller/kernel/store/collection.ts";
import { createEtcdStore } from "@holdfast/controller/kernel/store/etcd-store.ts";
import { keyOf } from "@holdfast/controller/kernel/store/resource.ts";
import { createPrimaryLeaseRules } from "@holdfast/controller/services/service/member/primary-replicas/primary.ts";
import { managedServiceKind } from "@holdfast/controller/services/service/managed-service.ts";
import { createShards } from "@holdfast/controller/kernel/runtime/shards.ts";
import { ListEngineUsersSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { TestEtcd } from "@holdfast/testing/controller/etcd.ts";
import { installationId, startController } from "@holdfast/testing/controller/test-fleet.ts";
import { idleService } from "../support/idle-service.ts";
import { answerQueries } from "../support/peer-queries.ts";

// The fleet of one controller among others: the real listener, sessions, tasks, registry, shards and store, alone in
// this process. Without compute providers, reconcilers and API: machines are only objects in etcd.
interface Settings {
  readonly id: string;
  readonly etcdUrl: string;
  /** Base64. */
  readonly masterKey: string;
  readonly directory: string;
  /** Time limit of a silent stream; the default if absent. */
  readonly silenceMs?: number;
}

const {
  id,
  etcdUrl,
  masterKey,
  directory,
  silenceMs = defaultLimits.silenceMs,
} = JSON.parse(process.argv[2] ?? "") as Settings;
const etcd = { url: etcdUrl } as TestEtcd;
const close = async () => undefined;
const installation = { etcd, masterKey: Buffer.from(masterKey, "base64"), directory, controllers: [], close };
// No rebalancing: the benchmark decides which controller the agents use.
const limits = { silenceMs, rebalance: { intervalMs: 3_600_000, batchSize: 0 } };
const services = createCollection(createEtcdStore({ hosts: [etcdUrl], log: silentLog }), managedServiceKind);
const controller = await startController(installation, id, {
  limits,
  primaryLeaseRules: createPrimaryLeaseRules(services),
});
const { store, controllerRegistry, machines, authority, fleet } = controller;
createShards({ store, controllerRegistry, cache: machines, log: silentLog });

answerQueries({
  /** Creates machines in etcd; returns the token of each. */
  machines: async ({ ids }: { ids: string[] }) => Promise.all(ids.map((machineId) => controller.newMachine(machineId))),
  /** Creates a service of two nodes for each of these primaries; its replica has no machine here. */
  async services({ primaries }: { primaries: string[] }) {
    for (const machineId of primaries) {
      const service = idleService(`service-of-${machineId}`, "organization");
      const nodes = [machineId, `${machineId}-2`];
      const spec = { ...service.spec, nodes: nodes.map((node) => ({ id: node, hostname: "", zone: "local" })) };
      const value = JSON.stringify({ ...service, spec, status: { ...service.status, primaryNodeId: machineId } });
      await store.commit({
        conditions: [],
        puts: [{ key: keyOf(managedServiceKind, service.metadata.id), value }],
        deletes: [],
      });
    }
    return services.size;
  },
  streams: async () => fleet.streamCount,
  cachedMachines: async () => controller.machines.size,
  revision: async () => String(await store.revision()),
  /** Number of log lines by message and reason. */
  async logged() {
    const counts: Record<string, number> = {};
    for (const { message, fields } of controller.logged) {
      const line = fields["reason"] === undefined ? message : `${message}: ${JSON.stringify(fields["reason"])}`;
      counts[line] = (counts[line] ?? 0) + 1;
    }
    return counts;
  },
  /** A certificate that identifies a peer as a controller to agents. */
  async peerIdentity() {
    const identity = await createRenewedIdentity({
      authority,
      identity: { kind: "controller", id: "peer" },
      names: ["localhost"],
      addresses: ["127.0.0.1"],
      clock: systemClock,
      log: silentLog,
    });
    const { privateKey, certificate } = identity.current;
    identity.close();
    return { key: privateKey, cert: certificate, ca: authority.trustBundle };
  },
  /**
   * Durable tasks at an even rate: a put, the watch, the stream. Returns the delivery time by task id, and the number
   * that the store refused because it was too slow for the rate.
   */
  async change({ ids, perSecond, seconds }: { ids: string[]; perSecond: number; seconds: number }) {
    const requestedAt: Record<string, number> = {};
    const pending: Promise<void>[] = [];
    let refused = 0;
    const startedAt = performance.now();
    for (let sent = 0; sent < perSecond * seconds; sent += 1) {
      const dueMs = startedAt + (sent * 1_000) / perSecond - performance.now();
      if (dueMs > 1) await new Promise((resolve) => setTimeout(resolve, dueMs));
      const taskId = `bench-${randomUUID()}`;
      const machineId = ids[Math.floor(Math.random() * ids.length)] ?? "";
      requestedAt[taskId] = performance.timeOrigin + performance.now();
      const request = {
        ownerId: `service-of-${machineId}`,
        generation: 1,
        term: 1,
        lane: "control",
        input: { case: "listEngineUsers", value: create(ListEngineUsersSchema) },
        deadlineMs: 60_000,
      } as const;
      const submitted = fleet.submit(machineId, taskId, request).catch(() => {
        refused += 1;
        delete requestedAt[taskId];
      });
      pending.push(submitted);
    }
    await Promise.all(pending);
    return { requestedAt, refused };
  },
  unfinished: async ({ tasks }: { tasks: string[] }) =>
    tasks.filter((taskId) => fleet.task(taskId)?.status !== "completed").length,
});
process.send?.({
  address: controller.address,
  trustBundle: authority.trustBundle,
  fingerprint: authority.fingerprint,
  installationId,
});
