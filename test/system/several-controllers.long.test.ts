import { readFileSync } from "node:fs";
import { ControlService, FleetService } from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import { HostService } from "@holdfast/proto/holdfast/admin/v1/host_pb.ts";
import { shardOf, shardOwnerOf } from "@holdfast/controller/kernel/runtime/ownership.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { withGrpc } from "@holdfast/testing/api/grpc-calls.ts";
import type { ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { resolveName } from "@holdfast/testing/network/dns-query.ts";
import {
  type ControllerHost,
  type ControllerHosts,
  startControllerHosts,
} from "@holdfast/testing/platform/controller-hosts.ts";
import { freePorts } from "@holdfast/testing/platform/free-ports.ts";
import { lastLogLines, logFiles } from "@holdfast/testing/platform/platform-logs.ts";
import { newSecondHost, type SecondHost } from "@holdfast/testing/platform/second-host.ts";
import { createServices, expectStatus } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

const isRoot = process.getuid?.() === 0;

describe.skipIf(!isRoot)("controllers on three hosts, each with a member of etcd", { timeout: 300_000 }, () => {
  let controllers: ControllerHosts;
  let machines: SecondHost;

  beforeAll(async () => {
    controllers = await startControllerHosts(3);
    const [port] = await freePorts(1);
    const added = { hostId: "machines", zone: "east", address: `${controllers.own}:${port}` };
    const { joinFile } = await withGrpc(hostOf(1).operator, HostService, (rpcs) => rpcs.addHost(added));
    machines = newSecondHost();
    await machines.start(joinFile);
    await waitUntil("it takes machines", async () => {
      const host = await withGrpc(hostOf(2).operator, HostService, (rpcs) => rpcs.getHost({ hostId: "machines" }));
      return host.state === "ready";
    });
  }, 300_000);
  afterAll(async () => {
    await machines?.remove();
    await controllers?.remove();
  });

  /** The host with this number, from 1 on. */
  function hostOf(number: number): ControllerHost {
    const host = controllers.hosts[number - 1];
    if (host === undefined) throw new Error(`there is no host ${number}`);
    return host;
  }
  const servicesAt = ({ rest }: ControllerHost) => createServices({ directory: controllers.directory, rest });
  const created: string[] = [];
  async function createRunning(host: ControllerHost, name: string): Promise<ServiceJson> {
    const services = servicesAt(host);
    const { id } = await services.create(name, { database_type: "valkey" });
    created.push(id);
    return services.settled(id, "Running");
  }
  /** Running controllers with shards, as this host's controller lists them. */
  const owners = async (host: ControllerHost) => {
    const found = await withGrpc(host.operator, ControlService, (rpcs) => rpcs.listControllers({}));
    return found.controllers
      .filter(({ shards }) => shards > 0)
      .map(({ id }) => id)
      .toSorted();
  };
  const ownersAre = (host: ControllerHost, ids: readonly string[]) =>
    waitUntil(`${ids.join(" and ")} own all shards`, async () => (await owners(host)).join() === ids.join(), {
      everyMs: 200,
      describe: () => lastLogLines(controllers.directory, 15),
    });
  /** Starts of all engines so far. */
  const engineStarts = () =>
    logFiles(machines.directory)
      .map((file) => readFileSync(file, "utf8").split("Ready to accept connections unix").length - 1)
      .reduce((sum, count) => sum + count, 0);
  const machinesOf = async (host: ControllerHost) => {
    const found = await withGrpc(host.operator, FleetService, (rpcs) => rpcs.listMachines({}));
    return found.machines.map(({ ownerId }) => ownerId).toSorted();
  };

  it("share the work, and are one API", async () => {
    await ownersAre(hostOf(1), ["controller-1", "controller-2", "controller-3"]);
    const { id, name } = await createRunning(hostOf(1), "first");
    for (const number of [2, 3]) expect(await servicesAt(hostOf(number)).get(id)).toMatchObject({ name });
  });

  it("continue without a host whose processes are killed", async () => {
    await hostOf(1).kill();
    for (const number of [2, 3])
      expect((await hostOf(number).rest.insist("GET", "/managed-services")).status).toBe(200);
    const service = await createRunning(hostOf(2), "second");
    await ownersAre(hostOf(3), ["controller-2", "controller-3"]);
    const { connection } = await servicesAt(hostOf(3)).open(service.id);
    for (const number of [2, 3])
      await waitUntil(
        `the DNS server of host ${number} has its name`,
        async () => (await resolveName(hostOf(number).dns, connection.host)).length > 0,
      );
    await hostOf(1).start();
    await ownersAre(hostOf(1), ["controller-1", "controller-2", "controller-3"]);
  });

  it("take over from a host that is cut off, and lose no operation and do none twice", async () => {
    const before = engineStarts();
    const all = controllers.hosts.map(({ id }) => id);
    const [key = ""] = created;
    const ownerId = shardOwnerOf(shardOf(key), all);
    const [cut] = controllers.hosts.filter(({ id }) => id === ownerId);
    const [other, another] = controllers.hosts.filter(({ id }) => id !== ownerId);
    if (cut === undefined || other === undefined || another === undefined) throw new Error(`nobody owns ${key}`);
    const pid = cut.controller;
    const restarts = created.map((id) => ({
      path: `/managed-services/${id}/restart`,
      options: { headers: { "idempotency-key": `restart-${id}` } },
    }));
    // The cut controller accepts both, and is the one that works on the first service.
    const accepted: (string | undefined)[] = [];
    for (const { path, options } of restarts)
      accepted.push(expectStatus(await cut.rest.post<ServiceJson>(path, {}, options), 202).json.operation?.id);
    await cut.cable(false);
    // A client without a response repeats its request at another controller.
    for (const [at, { path, options }] of restarts.entries()) {
      const repeated = await other.rest.insist<ServiceJson>("POST", path, { body: {}, ...options });
      expect(expectStatus(repeated, 202).json.operation?.id).toBe(accepted[at]);
    }
    const remaining = all.filter((id) => id !== cut.id);
    await ownersAre(other, remaining);
    expect(await cut.statusInside("GET", "/healthz")).toBe(503);
    const refused = { name: "refused", database_type: "valkey", plan_name: "tier-1", storage_size_gb: 1 };
    expect(await cut.statusInside("POST", "/managed-services", refused)).toBe(503);
    for (const path of ["/managed-services", `/managed-services/${key}`])
      expect(await cut.statusInside("GET", path)).toBe(503);
    const services = servicesAt(other);
    for (const id of created) await services.settled(id, "Running");
    const third = await createRunning(another, "third");

    await cut.cable(true);
    // It responds to nothing, and is not healthy, before it has read all that it missed.
    const isHealthy = async () => (await cut.statusInside("GET", "/healthz")) === 200;
    const healthy = waitUntil("it is healthy", isHealthy).then(() =>
      cut.statusInside("GET", `/managed-services/${third.id}`),
    );
    const [missed, listed] = await Promise.all(
      [`/managed-services/${third.id}`, "/managed-services"].map(async (path) => {
        const response = await waitUntil(`it responds to ${path}`, async () => {
          const found = await cut.rest.get<ServiceJson & { services?: ServiceJson[] }>(path).catch(() => undefined);
          return found !== undefined && found.status !== 503 && found;
        });
        return expectStatus(response, 200).json;
      }),
    );
    expect(missed).toMatchObject({ name: "third", status: "Running" });
    expect(listed?.services?.map(({ name }) => name)).toContain("third");
    expect(await healthy).toBe(200);
    await ownersAre(other, all);
    expect(cut.controller).toBe(pid);
    for (const [at, id] of created.slice(0, 2).entries()) {
      const operations = await services.operations(id);
      const found = operations.filter(({ type }) => type === "restart");
      expect(found).toMatchObject([{ id: accepted[at], status: "completed" }]);
    }
    // Each restart started its engine once, and so did the creation.
    expect(engineStarts()).toBe(before + accepted.length + 1);
    const last = await createRunning(cut, "fourth");
    expect(last.status).toBe("Running");
    expect(await machinesOf(another)).toEqual(created.toSorted());
  });
});
