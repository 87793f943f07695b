import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { FieldMaskSchema } from "@bufbuild/protobuf/wkt";
import { systemClock } from "@holdfast/common/clock.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { InstanceObservationSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { CreateAppRequestSchema, UpdateAppRequestSchema } from "@holdfast/proto/holdfast/v1/app_pb.ts";
import { createTestCertificate } from "@holdfast/testing/controller/test-certificate.ts";
import { startTestStore, type TestStore } from "@holdfast/testing/controller/test-store.ts";
import { readyHost } from "@holdfast/testing/platform/ready-host.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { uuidv7 } from "uuidv7";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Token, tokenKind } from "#access/credential/credential.ts";
import { defaultCatalog } from "#catalog/catalog.ts";
import type { Fleet } from "#fleet/fleet.ts";
import { type HostObject, hostKind } from "#fleet/host/host.ts";
import { type MachineObject, machineKind } from "#fleet/machine/machine.ts";
import { createSealer } from "#kernel/secrets/sealer.ts";
import { type DnsRecordObject, dnsRecordKind } from "#fleet/zone/dns-record.ts";
import { createZoneRecords } from "#fleet/zone/zone-records.ts";
import { type Collection, createCollection } from "#kernel/store/collection.ts";
import { newMetadata } from "#kernel/store/resource.ts";
import { type OperationObject, operationKind } from "#operation/operation.ts";
import { type AppObject, appKind } from "../app/app.ts";
import { appMessage } from "../app/app-message.ts";
import type { EndpointTarget } from "./delivery-plan.ts";
import { type DeploymentObject, deploymentKind } from "./deployment.ts";
import { createFloatingIps, type FloatingIpObject, type FloatingIps, floatingIpKind } from "./floating-ip.ts";
import { type HostedApp, isHosted } from "./hosted-app.ts";
import { appSoftware } from "./hosting.ts";
import { createHostingCommands } from "./hosting-commands.ts";
import { createHostingWork } from "./hosting-reconciler.ts";
import { createPlatformApi, type PlatformApi } from "./platform-api.ts";

// The reconciler over a real store. The machines' agents are reports that the test sets, and the registry is a server
// that has the images of a table; test/system/app-hosting.long.test.ts has the real ones.

const { signal } = new AbortController();
const digest = `sha256:${"a".repeat(64)}`;
const organizationId = "0198f2a4-7a11-7d02-8f6c-2b1e5a4c3d90";
const images = new Set(["shop/manifests/1", "shop/manifests/2"]);
const sealer = createSealer({ current: "v1", keys: new Map([["v1", randomBytes(32)]]) });
const sessions = new Set<string>();
const reports = new Map<string, MessageInitShape<typeof InstanceObservationSchema>>();
const delivered: string[] = [];
const ended: string[] = [];
const clock = systemClock;

let scenario: TestStore;
let server: Server;
let apps: Collection<AppObject>;
let deployments: Collection<DeploymentObject>;
let machines: Collection<MachineObject>;
let operations: Collection<OperationObject>;
let hosts: Collection<HostObject>;
let records: Collection<DnsRecordObject>;
let tokens: Collection<Token>;
let claims: Collection<FloatingIpObject>;
let isReachable = false;
let isRegistryDown = false;
let obstacle = "";
let endpoints: EndpointTarget[] = [];
let attachedIds: string[] = [];
let commands: ReturnType<typeof createHostingCommands>;
let platformApi: PlatformApi;
let floatingIps: FloatingIps;
let work: ReturnType<typeof createHostingWork>;
let id: string;

beforeAll(async () => {
  const { cert, key } = await createTestCertificate();
  server = createServer({ cert, key }, (request, response) => {
    const { pathname } = new URL(request.url ?? "/", "https://registry");
    if (isRegistryDown) {
      response.writeHead(503).end();
      return;
    }
    if (pathname === "/auth/token") {
      response.end(JSON.stringify({ token: request.headers.authorization?.startsWith("Basic ") ? "t" : "" }));
      return;
    }
    const isFound = [...images].some((each) => pathname === `/v2/${organizationId}/${each}`);
    const isAllowed = request.headers.authorization === "Bearer t";
    if (isAllowed && pathname.endsWith("/tags/list")) {
      const isKnown = pathname === `/v2/${organizationId}/shop/tags/list`;
      response.writeHead(isKnown ? 200 : 404).end(JSON.stringify(isKnown ? { tags: ["2", "1"] } : { errors: [] }));
      return;
    }
    response.writeHead(isAllowed ? (isFound ? 200 : 404) : 401, { "docker-content-digest": digest }).end();
  }).listen(0, "127.0.0.1");
  [scenario] = await Promise.all([startTestStore(clock), once(server, "listening")]);
  const { store, begin } = scenario;
  apps = createCollection(store, appKind);
  deployments = createCollection(store, deploymentKind);
  machines = createCollection(store, machineKind);
  operations = createCollection(store, operationKind);
  hosts = createCollection(store, hostKind);
  records = createCollection(store, dnsRecordKind);
  tokens = createCollection(store, tokenKind);
  claims = createCollection(store, floatingIpKind);
  await Promise.all(
    [apps, deployments, machines, operations, hosts, records, tokens, claims].map(({ ready }) => ready),
  );
  const host = readyHost("local");
  const image = { engine: appSoftware.name, version: appSoftware.version, image: "apps-1", available: true };
  const unit = begin();
  unit.create(hostKind, { ...host, status: { ...host.status, images: [...host.status.images, image] } });
  await hosts.untilRevision(await unit.commit(), 5_000);

  const fleet: Pick<Fleet, "run" | "session" | "observation" | "subscribe"> = {
    async run(machineId, { input }) {
      if (input.case === "convergeInstance") delivered.push(`${machineId} ${input.value.workload?.generation}`);
      throw new Error("the agent's report is set by the test");
    },
    session: (machineId) =>
      sessions.has(machineId)
        ? {
            controllerId: "c",
            connectedAt: 0,
            agentVersion: "1",
            agentDigest: "",
            keeperProtocol: 7,
            workloads: ["app"],
            bootId: "b",
          }
        : undefined,
    observation(machineId) {
      const report = reports.get(machineId);
      return report && { instance: create(InstanceObservationSchema, report), observedAt: 0, bootId: "b" };
    },
    subscribe: () => ({ close() {} }),
  };
  const { port } = server.address() as AddressInfo;
  const registry = { address: `127.0.0.1:${port}`, authorities: () => cert };
  platformApi = createPlatformApi({
    platformApiAddresses: ["127.0.0.1"],
    platformApiPort: 8_443,
    tokens,
    domain: "holdfast.test",
    sealer,
    newId: uuidv7,
    clock,
  });
  floatingIps = createFloatingIps({ floatingIps: ["192.0.2.7"], claims, clock });
  const deps = {
    apps,
    deployments,
    machines,
    operations,
    hosts,
    fleet,
    catalog: defaultCatalog,
    registry,
    sealer,
    attached: {
      variablesOf: () => ({ DATABASE_URL: "postgresql://test" }),
      endpointsOf: () => endpoints,
      obstacleOf: () => obstacle,
      admit: () => false,
      subscribe: () => ({ close() {} }),
      idsOf: () => attachedIds,
      prefixesOf: () => [],
      privateAddressOf: () => ({ host: "private", port: 1 }),
    },
    platformApi,
    floatingIps,
    begin,
    newId: uuidv7,
    ingress: {
      addressesOf: ({ spec }: AppObject) => [spec.hosting?.floatingIp ?? "127.0.0.1"],
      hostOf: ({ metadata: { name } }: AppObject) => `${name}.apps.holdfast.test`,
      urlOf: () => "",
      isReachable: async () => isReachable,
    },
    certificateOf: () => undefined,
    zone: createZoneRecords(records, clock),
    clock,
    log: silentLog,
  };
  commands = createHostingCommands(deps);
  work = createHostingWork({ ...deps, removeRest: async (_, { metadata }) => void ended.push(metadata.id) });
});
afterAll(async () => {
  for (const each of [apps, deployments, machines, operations, hosts, records, tokens, claims]) each?.close();
  await scenario?.close();
  server?.close();
});

const app = (): HostedApp => {
  const found = apps.get(id)?.object;
  if (found === undefined || !isHosted(found)) throw new Error("there is no hosted app");
  return found;
};
const nodes = () => app().status.hosting.nodeIds;
const newestOperation = () =>
  [...operations.values()].map(({ object }) => object).toSorted((a, b) => (a.metadata.id < b.metadata.id ? 1 : -1))[0];

/** Runs rounds until one changes nothing. */
async function converge(): Promise<void> {
  for (let round = 0; round < 20; round++) {
    const outcome = await work.reconciler.reconcile(id, signal);
    if (outcome.done || outcome.reason !== "the next step") return;
  }
  throw new Error("20 rounds have changed something");
}

/** Sets the report of each machine: the delivery that it has, and the states of its releases. */
function reportAll(servingReleaseId: string, states: Readonly<Record<string, string>>): void {
  const generation = BigInt(app().status.hosting.delivery?.generation ?? 0);
  for (const nodeId of nodes()) {
    const releases = Object.entries(states).map(([release, state]) => ({
      id: release,
      state,
      reason: state === "failed" ? "It ended." : "",
      lastLines: state === "failed" ? ["the last line"] : [],
    }));
    reports.set(nodeId, { state: "running", generation, app: { servingReleaseId, releases } });
  }
}

/** Creates the app that the next rounds are of. */
async function createApp(fields: MessageInitShape<typeof CreateAppRequestSchema> & { name: string }): Promise<void> {
  id = uuidv7();
  const unit = scenario.begin();
  const external: AppObject = {
    metadata: newMetadata(id, clock.now(), { name: fields.name, organizationId }),
    spec: { homeUrl: null, attachments: [], domains: [] },
    status: {},
  };
  const added = commands.added(create(CreateAppRequestSchema, fields))?.(unit, external);
  unit.create(appKind, added?.app ?? external);
  unit.claimName(appKind, organizationId, fields.name, id);
  await visible(await unit.commit());
}

async function power(to: "on" | "off"): Promise<void> {
  const before = await apps.getCurrent(id, signal);
  if (before === undefined) throw new Error("there is no app");
  const unit = scenario.begin();
  const { app: after } = await commands.powered(unit, before.object, to, signal);
  unit.update(appKind, before, after);
  await visible(await unit.commit());
}

async function change(fields: MessageInitShape<typeof UpdateAppRequestSchema>, paths: string[]): Promise<string> {
  const before = await apps.getCurrent(id, signal);
  if (before === undefined) throw new Error("there is no app");
  const unit = scenario.begin();
  const request = create(UpdateAppRequestSchema, { ...fields, updateMask: create(FieldMaskSchema, { paths }) });
  const deployed = await commands.deployed(unit, before.object, request, signal);
  unit.update(appKind, before, deployed.app);
  await visible(await unit.commit());
  return app().spec.hosting.deploymentId;
}

async function requestDeletion() {
  const stored = await apps.getCurrent(id, signal);
  if (stored === undefined) throw new Error("there is no app");
  const unit = scenario.begin();
  const requested = await commands.deleted(unit, { ...stored, object: app() }, signal);
  if (!requested.isRequested) await visible(await unit.commit());
  return requested;
}

async function visible(revision: bigint): Promise<void> {
  await Promise.all([apps, deployments, operations].map((each) => each.untilRevision(revision, 5_000)));
}

let first: string;
let second: string;

test("a new app gets a machine, the digest of its image, and a delivery once its agent has a session", async () => {
  await createApp({ name: "shop", imageRef: "shop:1", secretEnv: { A: "1" } });
  first = app().spec.hosting.deploymentId;
  await converge();
  expect(app().status.hosting).toMatchObject({ state: "Provisioning", delivery: { servingReleaseId: first } });
  const [nodeId = ""] = nodes();
  expect(machines.get(nodeId)?.object.spec).toMatchObject({ owner: { kind: "app", id }, software: appSoftware });
  expect(deployments.get(first)?.object.status.digest).toBe(digest);
  expect(newestOperation()?.status).toMatchObject({ state: "running", step: "SetupServer" });
  expect(delivered).toEqual([]);

  const machine = machines.get(nodeId);
  if (machine === undefined) throw new Error("there is no machine");
  const started = scenario.begin();
  const status = { ...machine.object.status, state: "running" as const, address: "127.80.0.2" };
  started.update(machineKind, machine, { ...machine.object, status });
  await machines.untilRevision(await started.commit(), 5_000);
  sessions.add(nodeId);
  await converge();
  expect(app().status.hosting.state).toBe("Deploying");
  expect(delivered).toEqual([`${nodeId} 1`]);
});

test("it is Running once the machine serves and clients reach it, and its operation has completed", async () => {
  reportAll(first, { [first]: "ready" });
  await converge();
  expect(app().status.hosting).toMatchObject({ state: "Deploying", readyIds: nodes(), servingId: null });
  expect(newestOperation()?.status).toMatchObject({ state: "running", step: "PublishName" });
  expect(records.get("shop.apps.holdfast.test")?.object.spec.addresses).toEqual(["127.0.0.1"]);
  isReachable = true;
  await converge();
  expect(app().status.hosting).toMatchObject({ state: "Running", servingId: first, operationId: null });
  expect(deployments.get(first)?.object.status).toMatchObject({ state: "succeeded" });
  expect(newestOperation()).toMatchObject({ spec: { type: "create" }, status: { state: "completed" } });
});

test("a second deployment starts beside the first one and replaces it; another one is refused until then", async () => {
  second = await change({ imageRef: "shop:2" }, ["image_ref"]);
  await expect(change({ port: 81 }, ["port"])).rejects.toMatchObject({ key: "OPERATION_IN_PROGRESS" });
  await converge();
  expect(app().status.hosting.delivery).toMatchObject({ releaseIds: [first, second], servingReleaseId: first });
  reportAll(first, { [first]: "ready", [second]: "ready" });
  await converge();
  expect(app().status.hosting.delivery).toMatchObject({ releaseIds: [second], servingReleaseId: second });
  reportAll(second, { [second]: "ready" });
  await converge();
  expect(app().status.hosting).toMatchObject({ state: "Running", servingId: second });
  expect(newestOperation()).toMatchObject({ spec: { type: "deploy" }, status: { state: "completed" } });
});

test("its programs have one token, which reads what is attached; a deleted one is replaced", async () => {
  const tokenOf = async () => {
    await converge();
    const { apiToken } = app().status.hosting;
    return tokens.getCurrent(apiToken?.id ?? "", signal);
  };
  const variables = platformApi.variablesOf(app());
  expect(variables["PLATFORM_API_URL"]).toBe("https://api.private.holdfast.test:7443");
  const token = await tokenOf();
  expect(token?.object.spec).toMatchObject({
    scopes: ["files:read", "services:read"],
    resources: [],
    expiresAt: null,
    secretHash: sealer.keyedHash("token", variables["PLATFORM_API_TOKEN"] ?? ""),
    owner: { kind: "app", id, name: "shop" },
  });
  attachedIds = ["orders"];
  const attached = await tokenOf();
  expect(attached?.object.spec.resources).toEqual([{ kind: "managed-service", id: "orders" }]);
  expect(attached?.object.metadata.id).toBe(token?.object.metadata.id);
  expect(platformApi.variablesOf(app())).toEqual(variables);

  if (attached === undefined) throw new Error("there is no token");
  const unit = scenario.begin();
  unit.remove(tokenKind, attached);
  await tokens.untilRevision(await unit.commit(), 5_000);
  attachedIds = [];
  expect((await tokenOf())?.object.spec.resources).toEqual([]);
  expect(platformApi.variablesOf(app())["PLATFORM_API_TOKEN"]).not.toBe(variables["PLATFORM_API_TOKEN"]);
});

test("a floating IP is the address of the app's name, and no other app gets it", async () => {
  const change = async (edit: "assign" | "release") => {
    const before = await apps.getCurrent(id, signal);
    if (before === undefined || !isHosted(before.object)) throw new Error("there is no hosted app");
    const unit = scenario.begin();
    unit.update(appKind, before, await floatingIps[edit](unit, before.object, signal));
    await visible(await unit.commit());
    await converge();
    return records.get("shop.apps.holdfast.test")?.object.spec.addresses;
  };
  expect(await change("release")).toEqual(["127.0.0.1"]);
  expect(await change("assign")).toEqual(["192.0.2.7"]);
  const { floatingIp: _, ...hosting } = app().spec.hosting;
  const other = { ...app(), spec: { ...app().spec, hosting } };
  const second = floatingIps.assign(scenario.begin(), other, signal);
  await expect(second).rejects.toMatchObject({ key: "NO_FLOATING_IP" });
  expect(await floatingIps.assign(scenario.begin(), app(), signal)).toBe(app());
  expect(await change("release")).toEqual(["127.0.0.1"]);
  expect(await change("assign")).toEqual(["192.0.2.7"]);
});

test("a deployment that fails leaves the app Running, with its last lines", async () => {
  const third = await change({ env: { ENDS: "3" } }, ["env"]);
  await converge();
  reportAll(second, { [second]: "ready", [third]: "failed" });
  await converge();
  expect(app().status.hosting).toMatchObject({
    state: "Running",
    servingId: second,
    failedId: third,
    delivery: { releaseIds: [second], servingReleaseId: second },
  });
  expect(deployments.get(third)?.object.status).toMatchObject({
    state: "failed",
    reason: "It ended.",
    lastLines: ["the last line"],
  });
  expect(newestOperation()?.status).toMatchObject({
    state: "failed",
    error: { code: "deploy_failed", message: "It ended." },
  });
});

test("after a failed deployment the app has the settings of what serves, and changes, restarts and attachments start there", async () => {
  const settingsOf = (deploymentId: string) => deployments.get(deploymentId)?.object.spec.settings;
  expect(app().spec.hosting.deploymentId).toBe(second);
  const summary = () => {
    const { hosted } = appMessage(app(), { ...commands, isRunning: () => true });
    return hosted && [hosted.imageRef, hosted.env, hosted.servesNewest, hosted.failedDeploymentNumber, hosted.reason];
  };
  expect(summary()).toEqual(["shop:2", {}, false, 3, "It ended."]);

  await expect(commands.rolledBack(scenario.begin(), app(), undefined, signal)).rejects.toMatchObject({
    key: "WRONG_STATE",
    detail: expect.stringContaining("changed nothing"),
  });
  const fourth = await change({ secretEnv: { TOKEN: "1" } }, ["secret_env"]);
  expect(settingsOf(fourth)).toMatchObject({ imageRef: "shop:2", environment: {}, secretNames: ["TOKEN"] });
  await converge();
  reportAll(second, { [second]: "ready", [fourth]: "failed" });
  await converge();
  expect(app().spec.hosting).toMatchObject({ deploymentId: second, deploymentNumber: 4 });
  for (const edit of [commands.restarted, commands.redeployed]) {
    const { app: after, deployment } = await edit(scenario.begin(), app(), signal);
    expect(deployment(after.spec.hosting?.deploymentId ?? "")?.spec.settings).toEqual(settingsOf(second));
  }
});

test.each([
  ["shop:9", "The registry has no image shop:9: shop has the tags 1, 2. Push it to "],
  [
    "nginx",
    "The organization has no image nginx in the platform's registry, the only one that apps run from. Push it ",
  ],
])("the image %s, which the registry does not have, fails its deployment", async (imageRef, reason) => {
  const missing = await change({ imageRef }, ["image_ref"]);
  await converge();
  expect(deployments.get(missing)?.object.status).toMatchObject({
    state: "failed",
    reason: expect.stringContaining(reason),
  });
  expect(app().status.hosting).toMatchObject({ state: "Running", servingId: second, operationId: null });
});

test("a registry that does not respond delays a deployment", async () => {
  isRegistryDown = true;
  const delayed = await change({ imageRef: "shop:2" }, ["image_ref"]);
  await converge();
  expect(newestOperation()?.status).toMatchObject({
    state: "running",
    step: "The registry of images does not respond.",
  });
  isRegistryDown = false;
  await converge();
  expect(deployments.get(delayed)?.object.status.digest).toBe(digest);
  reportAll(second, { [second]: "ready", [delayed]: "failed" });
  await converge();
});

test("a deletion removes the machines, then the app with its deployments and its name", async () => {
  const requested = await requestDeletion();
  expect(requested).toMatchObject({ isRequested: false, operation: { spec: { type: "delete" } } });
  await converge();
  expect(newestOperation()?.status).toMatchObject({ state: "running", step: "DeleteMachines" });
  const { operation } = await requestDeletion();
  expect(operation.metadata.id).toBe(requested.operation.metadata.id);
  const [machine] = [...machines.values()];
  if (machine === undefined) throw new Error("there is no machine");
  expect(machine.object.metadata.deletionRequestedAt).toBeGreaterThan(0);
  expect(apps.get(id)).toBeDefined();
  const removed = scenario.begin();
  removed.remove(machineKind, machine);
  await machines.untilRevision(await removed.commit(), 5_000);
  await converge();
  expect([apps.size, deployments.size, records.size]).toEqual([0, 0, 0]);
  await waitUntil("its token and its address are free", async () => tokens.size + claims.size === 0);
  expect(newestOperation()?.status.state).toBe("completed");
  expect(ended).toEqual([id]);
  const again = scenario.begin();
  again.claimName(appKind, organizationId, "shop", uuidv7());
  await expect(again.commit()).resolves.toBeGreaterThan(0n);
});

test("the machines of an app that was deleted with its organization are deleted", async () => {
  const unit = scenario.begin();
  const owner = { kind: appKind.name, id: uuidv7() };
  const machine = {
    metadata: newMetadata(uuidv7(), clock.now()),
    spec: {
      owner,
      software: appSoftware,
      image: "",
      vcpu: 1,
      memoryBytes: 1,
      rootBytes: 1,
      diskBytes: 1,
      zone: "local",
      hostId: null,
      storageTier: "maxiops",
      apart: "preferred" as const,
      power: "on" as const,
      serverNames: [],
    },
    status: {
      state: "pending" as const,
      reason: "",
      address: "",
      publicAddress: "",
      enrollment: null,
      certificate: null,
    },
  };
  unit.create(machineKind, machine);
  await machines.untilRevision(await unit.commit(), 5_000);
  expect([...work.keys()]).toEqual([owner.id]);
  id = owner.id;
  await converge();
  expect(machines.get(machine.metadata.id)?.object.metadata.deletionRequestedAt).toBeGreaterThan(0);
});

test("a new app whose image is missing is in Error, also after a stop and a start", async () => {
  await createApp({ name: "blog", imageRef: "shop:9" });
  await converge();
  const error = expect.stringContaining("The registry has no image shop:9");
  expect(app().status.hosting).toMatchObject({ state: "Error", error, operationId: null });
  await power("off");
  await converge();
  reports.set(nodes()[0] ?? "", { state: "stopped" });
  await converge();
  expect(app().status.hosting).toMatchObject({ state: "Stopped", operationId: null });
  await power("on");
  await converge();
  expect(app().status.hosting).toMatchObject({ state: "Error", error, operationId: null });
  expect(newestOperation()).toMatchObject({ spec: { type: "start" }, status: { state: "failed" } });
});
