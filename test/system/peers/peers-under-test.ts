import { type Host, HostService } from "@holdfast/proto/holdfast/admin/v1/host_pb.ts";
import { expect } from "vitest";
import type { AcknowledgedWriter } from "../../faults/acknowledged-writer.ts";
import { type GrpcCalls, withGrpc } from "@holdfast/testing/api/grpc-calls.ts";
import type { ConnectionJson, OperationJson, ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { type ChangingImages, createChangingImages } from "@holdfast/testing/machines/changing-images.ts";
import {
  createMaintenanceRequests,
  type MaintenanceRequests,
} from "@holdfast/testing/machines/maintenance-requests.ts";
import { resolveName } from "@holdfast/testing/network/dns-query.ts";
import { type ExtendedCheckout, extendCheckout } from "@holdfast/testing/platform/extended-checkout.ts";
import { freePorts } from "@holdfast/testing/platform/free-ports.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { lastLogLines } from "@holdfast/testing/platform/platform-logs.ts";
import { killImmediately, type MachineProcesses } from "@holdfast/testing/platform/platform-processes.ts";
import { newSecondHost, type SecondHost } from "@holdfast/testing/platform/second-host.ts";
import { createServices, expectStatus, type Services } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import type { PeersEngine } from "./peers-engine.ts";

export const longMs = 360_000;

/**
 * A managed service of an engine whose members elect their leader. An engine of the tests is added to a copy of the
 * checkout by the steps of CONTRIBUTING.md. The controller, the agents and the quorum are the real ones, on a first
 * host and the hosts with these ids.
 */
export function createPeersUnderTest(engine: PeersEngine, hostIds: readonly string[] = ["second", "third"]) {
  const writing = new AbortController();
  let checkout: ExtendedCheckout;
  let images: ChangingImages;
  let platform: Platform;
  const others = new Map<string, SecondHost>();
  let services: Services;
  let maintenance: MaintenanceRequests;
  let writer: AcknowledgedWriter;
  let connection: ConnectionJson;
  let id: string;

  async function start(): Promise<void> {
    checkout = extendCheckout(engine.registryLines);
    images = createChangingImages({ looksOlder: true });
    const environment = { HOLDFAST_CACHE: images.cache };
    platform = await startPlatform({ checkout: checkout.directory, environment });
    services = createServices(platform);
    maintenance = createMaintenanceRequests(platform, services);
    for (const hostId of hostIds) await addHost(hostId, environment);
  }

  async function remove(): Promise<void> {
    writing.abort();
    await Promise.all([...others.values()].map((host) => host.remove()));
    await platform?.remove();
    images?.close();
    checkout?.remove();
  }

  const hosts = <T>(run: (rpcs: GrpcCalls<typeof HostService>) => Promise<T>) =>
    withGrpc({ url: platform.admin.grpc_url, ca: platform.ca, authorization: platform.operator }, HostService, run);
  const hostIs = (hostId: string, test: (found: Host) => boolean) =>
    waitUntil(`${hostId} is as it should be`, () => hosts(async (rpcs) => test(await rpcs.getHost({ hostId }))), {
      everyMs: 250,
      withinMs: longMs,
      describe: () => lastLogLines(platform.directory, 20),
    });

  async function addHost(hostId: string, environment: Record<string, string>): Promise<void> {
    const host = newSecondHost([], checkout.directory);
    others.set(hostId, host);
    const [port] = await freePorts(1);
    const { joinFile } = await hosts((rpcs) => rpcs.addHost({ hostId, zone: "local", address: `127.0.0.1:${port}` }));
    await host.start(joinFile, [], { ...environment, HOLDFAST_SPARES: "0" });
    await hostIs(hostId, ({ state }) => state === "ready");
  }

  const path = (rest = "") => `/managed-services/${id}${rest}`;
  const machines = (): MachineProcesses[] =>
    [platform, ...others.values()].flatMap((host) => host.processes().machines);
  const machineOf = (nodeId: string) => machines().find((each) => each.id === nodeId);
  const engineOf = (nodeId: string) => machineOf(nodeId)?.engine;
  const killControllers = () => {
    for (const pid of platform.processes().controllers) killImmediately(pid);
  };
  const leaderIn = ({ nodes }: ServiceJson) => nodes.find(({ role }) => role === "primary")?.id ?? "";

  async function writesContinue(): Promise<void> {
    const before = writer.acknowledged;
    await waitUntil("writes continue", () => writer.acknowledged > before + 5);
  }

  /** The service with these members, or those of the cluster now, each in sync, under its names, with writes. */
  async function isComplete(numbers?: readonly number[]): Promise<ServiceJson> {
    const names = numbers?.map(engine.memberName) ?? (await engine.memberNames(platform, connection));
    const isIt = async () => {
      const service = await services.settled(id, "Running", longMs);
      const running = service.nodes.filter(({ status }) => status === "Running").length;
      return (
        service.nodes.length === names.length &&
        running === names.length &&
        service.health.status === "healthy" &&
        service
      );
    };
    const service = await waitUntil(`members ${names.join()} are in sync`, isIt, {
      withinMs: longMs,
      everyMs: 250,
      describe: () => services.describe(id),
    });
    expect(await engine.memberNames(platform, connection)).toEqual(names);
    expect(service.nodes.map(({ role }) => role).toSorted()).toEqual(
      names.map((_, index) => (index === 0 ? "primary" : "replica")),
    );
    await waitUntil("the name resolves to all members", async () => {
      const addresses = await resolveName(platform.admin.dns_server, connection.host);
      return addresses.length === names.length;
    });
    await writesContinue();
    return service;
  }

  const ended = (operationId: string): Promise<OperationJson> =>
    waitUntil(
      "the operation has ended",
      async () => {
        const now = await maintenance.operation(operationId);
        return now.finished_at !== null && now;
      },
      { withinMs: longMs, everyMs: 100, describe: () => services.describe(id) },
    );

  /** Creates the service with this number of members, and begins to write. */
  async function form(count = 3): Promise<ServiceJson> {
    const { databaseType, parameters } = engine;
    ({ id } = await services.create("orders", { database_type: databaseType, node_count: count, parameters }));
    await services.settled(id, "Running", longMs);
    ({ json: connection } = expectStatus(await platform.rest.get<ConnectionJson>(path("/connection")), 200));
    writer = engine.writeTo(platform, connection, writing.signal);
    return isComplete([1, 2, 3].slice(0, count));
  }

  return {
    get platform() {
      return platform;
    },
    get services() {
      return services;
    },
    get maintenance() {
      return maintenance;
    },
    get images() {
      return images;
    },
    get writer() {
      return writer;
    },
    get connection() {
      return connection;
    },
    get id() {
      return id;
    },
    others,
    start,
    remove,
    form,
    hosts,
    hostIs,
    path,
    machines,
    machineOf,
    engineOf,
    killControllers,
    leaderIn,
    writesContinue,
    isComplete,
    ended,
    async stopWriting() {
      writing.abort();
      await writer.done;
    },
  };
}
