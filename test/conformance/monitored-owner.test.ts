import { readFile } from "node:fs/promises";
import { create } from "@bufbuild/protobuf";
import { metricOf } from "@holdfast/common/metric-catalog.ts";
import { type Controller, startController } from "@holdfast/controller/controller.ts";
import { newMetadata } from "@holdfast/controller/kernel/store/resource.ts";
import { defineOperation, newOperation } from "@holdfast/controller/operation/operation-definition.ts";
import { operationKind } from "@holdfast/controller/operation/operation.ts";
import { SampleSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { basic, createRest, type Rest } from "@holdfast/testing/api/rest.ts";
import { type Board, boardKind } from "@holdfast/testing/board/board.ts";
import { type BoardSystem, systemsWithBoards } from "@holdfast/testing/board/board-system.ts";
import { isOwnedBy } from "@holdfast/testing/board/board-work.ts";
import { type ControllerFixture, newControllerFixture } from "@holdfast/testing/controller/local-controller.ts";
import { exportReaders } from "@holdfast/testing/servers/export-readers.ts";
import { type ExportReceiver, startExportReceiver } from "@holdfast/testing/servers/export-receiver.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

// A board owns a machine and is not a service (testing/src/board). The controller is the real one; samples of the
// board's machine come from this test instead of an agent, since no host runs the machine.

type Json = Record<string, unknown>;

const reader = exportReaders.prometheus_remote_write;

let fixture: ControllerFixture;
let controller: Controller;
let inside: BoardSystem;
let rest: Rest;
let settings: Record<string, string>;
let receiver: ExportReceiver;
let board: Board;

beforeAll(async () => {
  receiver = await startExportReceiver((arrival) => reader.acceptance(arrival));
  fixture = await newControllerFixture("inst-monitored");
  settings = { ...(await fixture.settingsIn(fixture.directory)), HOLDFAST_ALLOW_EGRESS: "127.0.0.0/8" };
  controller = await startController(
    systemsWithBoards((opened) => {
      inside = opened;
    }),
    settings,
  );
  const { api_key_id: id, api_key_secret: secret } = fixture.bootstrap;
  rest = await restWith(basic(id, secret));
});
afterAll(async () => {
  rest?.close();
  await controller?.stop();
  await fixture?.close();
  await receiver?.close();
});

async function restWith(authorization: string): Promise<Rest> {
  const { HOLDFAST_BASE_URL: baseUrl = "", HOLDFAST_CA_FILE: caFile = "" } = settings;
  return createRest({ baseUrl, ca: await readFile(caFile, "utf8"), authorization });
}

const machineId = () =>
  [...inside.fleet.machines.values()].find(({ object }) => isOwnedBy(object, board.metadata.id))?.object.metadata.id;

/** Stores a sample of the board's machine at the current time. Like an agent, it repeats until the history is ready. */
async function measure(values: Readonly<Record<string, number>>): Promise<void> {
  const slots = Object.keys(values).map((name) => metricOf(name)?.number ?? 0);
  const sample = create(SampleSchema, { timeMs: BigInt(inside.clock.now()), slots, values: Object.values(values) });
  await waitUntil("the sample is stored", async () => {
    const outcome = await inside.sink.take(machineId() ?? "", [sample]);
    return outcome.stored && outcome.refused === 0;
  });
}

/** Path of the board in the API, with `rest` appended. */
const path = (rest: string) => `/boards/${board.metadata.id}/${rest}`;
/** The path of an owner of any kind, which the methods declare. */
const pathOfAny = (rest: string) => `/managed-services/${board.metadata.id}/${rest}`;

async function list(of: string, member: string): Promise<Json[]> {
  const { status, json } = await rest.get<Record<string, Json[]>>(of);
  expect([of, status]).toEqual([of, 200]);
  return json[member] ?? [];
}

async function found(of: string, member: string, matches: (item: Json) => boolean): Promise<Json> {
  let item: Json | undefined;
  await waitUntil(`${of} has the expected item`, async () => {
    item = (await list(of, member)).find(matches);
    return item !== undefined;
  });
  return item as Json;
}

test("an owner that is no service is measured, alarmed, exported, and listed with operations and events", async () => {
  const organizationId = (await list("/organizations", "organizations"))[0]?.["id"] as string;
  const used = async () =>
    (await rest.get<{ usage: Json }>(`/organizations/${organizationId}`)).json.usage["storage_gb"] ?? 0;
  expect(await used()).toBe(0);
  const metadata = newMetadata(inside.newId(), inside.clock.now(), { name: "chess", organizationId });
  board = { metadata, spec: { zone: "local" }, status: {} };
  const { id } = metadata;
  const unit = inside.begin();
  unit.create(boardKind, board);
  await inside.boards.untilRevision(await unit.commit(), 5_000);
  await waitUntil("the board has a machine", () => machineId() !== undefined);

  // Quotas: its storage counts together with the storage of services.
  expect(await used()).toBe(1);

  // Health, and metrics by the label of its kind.
  expect((await rest.get<Json>(path("health"))).json).toMatchObject({ status: "healthy" });
  await measure({ disk: 40, health: 0 });
  await waitUntil("its samples are in the exposition", async () =>
    (await rest.get(path("metrics/export"))).text.includes(`service_id="${id}",service_name="chess",db_type="board"`),
  );
  expect((await rest.get(path("metrics/export"))).text).toContain("holdfast_disk{");
  expect((await rest.get("/metrics")).text).toContain(`service_id="${id}"`);
  const { json } = await rest.get<{ series: Json[] }>(path("metrics?metric=disk&period=1h"));
  expect(json.series).toMatchObject([{ metric: "disk", node_id: machineId(), role: "primary" }]);
  const [sample] = await list(path("metrics/samples?metric=disk"), "samples");
  expect(sample).toMatchObject({ node_id: machineId(), values: { disk: 40 } });
  expect((await rest.get<Json>(path("metrics?metric=pg_locks"))).json["detail"]).toContain("this board is board");

  // Alerts: the default rules of its kind, and one that fires and is resolved.
  await waitUntil("it has its default rules", async () => (await list(path("alerts/rules"), "rules")).length === 2);
  const rule = { metric: "disk", condition: "gt", threshold: 90, duration_minutes: 0 };
  expect((await rest.post(path("alerts/rules"), rule)).status).toBe(201);
  await measure({ disk: 95 });
  const firing = await found("/alerts/firing", "alerts", (alert) => alert["service_id"] === id);
  expect(firing).toMatchObject({ service_name: "chess", metric: "disk", node_id: machineId() });
  const isFired = ({ event_type: type }: Json) => type === "alert.fired";
  for (const events of [path("events"), path("alerts/events"), `/events?service=${id}`])
    expect(await found(events, "events", isFired)).toMatchObject({ data: { service_id: id, service_name: "chess" } });

  // Exports: an integration that belongs to the board.
  const integration = {
    name: "push",
    destination_type: "prometheus_remote_write",
    data_type: "metrics",
    export_interval_seconds: 30,
    configuration: reader.configuration(receiver.url),
    service_id: id,
  };
  const { status, text } = await rest.post("/api/v1/metrics-exports", integration);
  expect([status, text]).toEqual([201, expect.any(String)]);
  await measure({ disk: 96 });
  await waitUntil("its samples are exported", () =>
    receiver.arrivals.flatMap((arrival) => reader.read(arrival) ?? []).some(({ serviceId }) => serviceId === id),
  );

  // Operations: a subject of any kind lists its operations.
  const type = defineOperation({ type: "repaint", of: "the board" });
  const operation = {
    id: inside.newId(),
    subject: { kind: "board", id },
    organizationId,
    type,
    now: inside.clock.now(),
  };
  const begin = inside.begin();
  begin.create(operationKind, newOperation(operation));
  await begin.commit();
  expect(await found(path("operations"), "operations", () => true)).toMatchObject({
    id: operation.id,
    type: "repaint",
  });

  // Logs: its machine is found, and has no agent.
  expect((await rest.get<Json>(path("logs"))).json).toMatchObject({ code: "machine_unreachable" });

  // Health history: its events of the type of its kind.
  const change = inside.begin();
  const data = { service_id: id, from: "healthy", to: "degraded" };
  const event = { type: "board.health_changed", organizationId, objectKind: boardKind.name, objectId: id };
  change.event({ ...event, data });
  await change.commit();
  expect(await found(path("health/history"), "events", () => true)).toMatchObject({
    event_type: "board.health_changed",
  });

  // Paths: the methods also have the paths of any owner; a board's path has no method of services.
  expect((await rest.get<Json>(pathOfAny("health"))).json).toMatchObject({ status: "healthy" });
  expect((await list(pathOfAny("alerts/rules"), "rules")).length).toBe(3);
  expect((await rest.get(path("backups"))).status).toBe(404);
  const { json: document } = await rest.get<{ paths: Record<string, Json> }>("/openapi.json");
  expect(document.paths["/boards/{service_id}/health"]).toMatchObject({ get: { operationId: "getHealth-of-board" } });
  expect(document.paths["/managed-services/{service_id}/health"]).toMatchObject({ get: { operationId: "getHealth" } });
  const absent = await rest.get<Json>(`/boards/${inside.newId()}/health`);
  expect(absent.json).toMatchObject({ status: 404, detail: "There is no such board in the organization." });

  // A token without the scope of its kind does not see it.
  const token = { scopes: ["services:read"], ttl_seconds: 60 };
  const { json: issued } = await rest.post<Json>("/tokens", token);
  const narrow = await restWith(`Bearer ${issued["token"]}`);
  expect((await narrow.get(path("health"))).status).toBe(404);
  expect((await narrow.get<{ alerts: Json[] }>("/alerts/firing")).json.alerts).toEqual([]);
  narrow.close();

  // Deleted: its alert is resolved, its rules and its integration are deleted, and its events remain.
  const stored = inside.boards.get(id);
  if (stored === undefined) throw new Error("the board is absent");
  const end = inside.begin();
  const deletionRequestedAt = inside.clock.now();
  end.update(boardKind, stored, { ...stored.object, metadata: { ...stored.object.metadata, deletionRequestedAt } });
  await end.commit();
  const resolved = await found(`/events?service=${id}`, "events", ({ event_type: type }) => type === "alert.resolved");
  expect(resolved).toMatchObject({ data: { reason: "board_deleted" } });
  await waitUntil(
    "its integration is deleted",
    async () => (await list("/api/v1/metrics-exports", "integrations")).length === 0,
  );
  await waitUntil("it is deleted", async () => (await rest.get(path("health"))).status === 404);
  expect((await list(path("events"), "events")).some(isFired)).toBe(true);
  const history = await list(path("health/history"), "events");
  expect(history.map((event) => event["event_type"])).toEqual(["board.health_changed"]);
});

test("a service has no path of another kind", async () => {
  const { status, json } = await rest.get<Json>(`/boards/${fixture.bootstrap.api_key_id}/operations`);
  expect(json).toMatchObject({ code: "service_not_found", detail: "There is no such board in the organization." });
  expect(status).toBe(404);
});
