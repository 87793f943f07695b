import { type Host, HostService } from "@holdfast/proto/holdfast/admin/v1/host_pb.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type AcknowledgedWriter, writeRows } from "../faults/acknowledged-writer.ts";
import { type GrpcCalls, withGrpc } from "@holdfast/testing/api/grpc-calls.ts";
import { type ServiceJson, withPrimary } from "@holdfast/testing/api/service-json.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { lastLogLines } from "@holdfast/testing/platform/platform-logs.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { freePorts } from "@holdfast/testing/platform/free-ports.ts";
import { newSecondHost, type SecondHost } from "@holdfast/testing/platform/second-host.ts";
import { createServices, type RunningService, type Services } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

const longMs = 360_000;

describe("a PostgreSQL of two nodes on two hosts", () => {
  const writing = new AbortController();
  let platform: Platform;
  let second: SecondHost;
  let services: Services;
  let orders: RunningService;
  let writer: AcknowledgedWriter;
  let id: string;
  beforeAll(async () => {
    platform = await startPlatform();
    second = newSecondHost();
    const [port] = await freePorts(1);
    const added = { hostId: "second", zone: "local", address: `127.0.0.1:${port}` };
    const { joinFile } = await hosts((rpcs) => rpcs.addHost(added));
    await second.start(joinFile);
    await hostIs("second", ({ state }) => state === "ready");
    services = createServices(platform);
    orders = await services.createRunning("orders", { node_count: 2, replication_mode: "sync" });
    ({ id } = orders.service);
    writer = await writeRows(platform, orders, writing.signal);
  }, longMs);
  afterAll(async () => {
    writing.abort();
    await second?.remove();
    await platform?.remove();
  });

  const hosts = <T>(run: (rpcs: GrpcCalls<typeof HostService>) => Promise<T>) => {
    const target = { url: platform.admin.grpc_url, ca: platform.ca, authorization: platform.operator };
    return withGrpc(target, HostService, run);
  };
  const hostIs = (hostId: string, test: (found: Host) => boolean) =>
    waitUntil(`${hostId} is as it should be`, () => hosts(async (rpcs) => test(await rpcs.getHost({ hostId }))), {
      everyMs: 250,
      withinMs: longMs,
      describe: async () => `${lastLogLines(platform.directory, 20)}\n${await services?.describe(id)}`,
    });
  const isDrained = (hostId: string) => hostIs(hostId, ({ drain }) => drain?.state === "drained" && drain.left === 0);
  /** The service's nodes whose machine is on this host. */
  const nodesOn = (host: Pick<SecondHost, "processes"> | Platform, nodes: ServiceJson["nodes"]) =>
    nodes.filter((node) => host.processes().machines.some((machine) => machine.id === node.id)).map((node) => node.id);
  async function isPlain(): Promise<ServiceJson> {
    const service = await services.settled(id, "Running", longMs);
    expect(service.nodes.map(({ role }) => role).sort()).toEqual(["primary", "replica"]);
    const moves = (await services.operations(id)).filter(({ type }) => type === "move_node");
    expect(moves.map(({ status }) => status)).toEqual(moves.map(() => "completed"));
    expect(moves).not.toEqual([]);
    const before = writer.acknowledged;
    await waitUntil("writes continue", async () => writer.acknowledged > before + 5);
    return service;
  }

  it(
    "has the node of the drained host recreated on the other, or runs without it",
    async () => {
      const { nodes, primary_node_id: primary } = withPrimary(await services.get(id));
      expect([nodesOn(platform, nodes).length, nodesOn(second, nodes).length]).toEqual([1, 1]);
      const replicaIsSecond = nodesOn(second, nodes)[0] !== primary;
      const hostId = replicaIsSecond ? "second" : "local";
      await hosts((rpcs) => rpcs.drainHost({ hostId }));
      await isDrained(hostId);
      const after = await isPlain();
      expect(after.primary_node_id).toBe(primary);
      expect(nodesOn(replicaIsSecond ? platform : second, after.nodes)).toHaveLength(2);
      await hosts((rpcs) => rpcs.uncordonHost({ hostId }));
    },
    longMs,
  );

  it(
    "leaves a drained host with both nodes, the primary by a switchover, though controllers are killed",
    async () => {
      const { nodes, primary_node_id: primary } = withPrimary(await services.get(id));
      const hostId = nodesOn(platform, nodes).length === 2 ? "local" : "second";
      const otherHost = hostId === "local" ? second : platform;
      await hosts((rpcs) => rpcs.drainHost({ hostId }));
      await waitUntil("a node is created on the other host", () => otherHost.processes().machines.length > 0);
      for (const pid of platform.processes().controllers) killImmediately(pid);
      await isDrained(hostId);
      const after = await isPlain();
      expect(after.nodes.map((node) => node.id)).not.toContain(primary);
      expect(nodesOn(otherHost, after.nodes)).toHaveLength(2);
    },
    longMs,
  );

  it("has lost no acknowledged row", async () => {
    writing.abort();
    await writer.done;
    expect(await writer.missing()).toEqual([]);
  });
});
