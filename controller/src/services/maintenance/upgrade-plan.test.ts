import { create } from "@bufbuild/protobuf";
import { InstanceObservationSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { expect, test } from "vitest";
import { readyHost } from "../../../../test/support/platform/ready-host.ts";
import { runningService } from "../../../../test/support/controller/service-object.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import { replicaOf } from "../../../../test/support/controller/observed-service.ts";
import { beginUpgrade } from "./begin-maintenance.ts";
import { registerChanges } from "./image-register.ts";
import type { MaintenanceWorld } from "./pending-update.ts";
import { planUpgrade, requireNewer } from "./upgrade-plan.ts";

const valkey = (spec: Partial<ManagedServiceObject["spec"]> = {}) =>
  runningService({}, { databaseType: "valkey", version: "8.1", image: "trixie-1", ...spec });

function world(change: Partial<MaintenanceWorld> = {}, imageIds = ["trixie-1", "sid-1"]): MaintenanceWorld {
  const facts = [
    { engine: "valkey", version: "8.1", available: true, image: "trixie-1", engineVersion: "8.1.1" },
    { engine: "valkey", version: "9", available: true, image: "sid-1", engineVersion: "9.1.2" },
  ];
  return {
    hosts: [readyHost("a", {}, { imageIds })],
    images: [...registerChanges(facts, [], new Set(), 0).added],
    image: "trixie-1",
    guestKernel: "",
    keepers: [],
    noSnapshots: "",
    restorePoint: 1,
    instance: undefined,
    now: 0,
    ...change,
  };
}

const found = (service: ManagedServiceObject, seen: MaintenanceWorld) =>
  planUpgrade(service, "9", seen).findings.map(({ code, blocking }) => (blocking ? `${code}!` : code));

// biome-ignore format: a table, aligned so that it reads as one
test.each<[what: string, ManagedServiceObject, MaintenanceWorld, codes: string[]]>([
  ["a single node is down meanwhile",                 valkey(),                                           world(),                                              ["downtime"]],
  ["a host lacks the image",                          valkey(),                                           world({}, ["trixie-1"]),                              ["no_image!", "downtime"]],
  ["a parameter that the version has not",            valkey({ parameters: { frobnicate: "1" } }),        world(),                                              ["parameter_unknown!", "downtime"]],
  ["no snapshot, but a backup",                       valkey(),                                           world({ noSnapshots: "ext4" }),                       ["downtime", "no_snapshot"]],
  ["neither snapshot nor backup",                     valkey(),                                           world({ noSnapshots: "ext4", restorePoint: undefined }), ["no_backup!", "downtime", "no_snapshot"]],
  ["no backup, where the data go back by a snapshot", valkey(),                                           world({ restorePoint: undefined }),                   ["downtime", "no_backup"]],
  ["a service that does not run",                     valkey({ power: "off" }),                            world(),                                              ["not_ready!", "downtime"]],
])("an upgrade tells: %s", (_what, service, seen, codes) => {
  expect(found(service, seen)).toEqual(codes);
});

const postgresql = (spec: Partial<ManagedServiceObject["spec"]> = {}) =>
  runningService({}, { image: "trixie-1", ...spec });

function worldOfData(change: Partial<MaintenanceWorld> = {}, libc = "2.41"): MaintenanceWorld {
  const facts = [
    { engine: "postgresql", version: "17", available: true, image: "trixie-1", textLibraries: { libc: "2.41" } },
    { engine: "postgresql", version: "18", available: true, image: "sid-1", textLibraries: { libc } },
  ];
  const images = [...registerChanges(facts, [], new Set(), 0).added];
  return world({ images, noSnapshots: "ext4", ...change });
}

const texts = create(InstanceObservationSchema, { textLibraries: ["libc"] });

// biome-ignore format: a table, aligned so that it reads as one
test.each<[what: string, ManagedServiceObject, MaintenanceWorld, obstacles: { code: string; message: string }[], codes: string[]]>([
  ["the data stay beside, whatever the file system", postgresql(),                                    worldOfData(),                             [],                                     ["downtime"]],
  ["no backup",                                      postgresql(),                                    worldOfData({ restorePoint: undefined }),  [],                                     ["no_backup!", "downtime"]],
  ["replicas",                                       postgresql({ nodes: [...postgresql().spec.nodes, replicaOf("r2", 2)] }), worldOfData(),     [],                                     ["replicas", "downtime"]],
  ["a primary that gives way to another",            postgresql({ succession: { from: "a", to: "b", step: "promote", since: 0 } }), worldOfData(),               [],                                     ["not_ready!", "downtime"]],
  ["a replica without its data",                     postgresql({ nodes: [...postgresql().spec.nodes, { ...replicaOf("r2", 2), joining: true }] }), worldOfData(), [],                     ["replicas!", "downtime"]],
  ["a replica with data of before",                  postgresql({ nodes: [...postgresql().spec.nodes, { ...replicaOf("r2", 2), pinned: { image: "bookworm-1", version: "16" } }] }), worldOfData(), [], ["replicas!", "downtime"]],
  ["what is in the data",                            postgresql(),                                    worldOfData(),                             [{ code: "no_room", message: "" }],     ["no_room!", "downtime"]],
  ["texts in another order",                         postgresql(),                                    worldOfData({ instance: texts }, "2.43"),  [],                                     ["text_order!", "downtime"]],
  ["another order that no text has",                 postgresql(),                                    worldOfData({}, "2.43"),                   [],                                     ["downtime"]],
])("an upgrade of data tells: %s", (_what, service, seen, obstacles, codes) => {
  const { findings } = planUpgrade(service, "18", seen, obstacles);
  expect(findings.map(({ code, blocking }) => (blocking ? `${code}!` : code))).toEqual(codes);
});

test("texts in another order block no upgrade that accepts them, and it is not rolled back for them", () => {
  const seen = worldOfData({ instance: texts }, "2.43");
  const { findings } = planUpgrade(postgresql(), "18", seen, [], true);
  expect(findings.map(({ code, blocking }) => (blocking ? `${code}!` : code))).toEqual(["text_order", "downtime"]);
  const asked = { operationId: "o", now: 5, acceptsTextOrder: true };
  const { operation } = beginUpgrade(postgresql(), { version: "18", image: "sid-1" }, seen, asked);
  expect(operation.spec).toMatchObject({ work: { acceptsTextOrder: true } });
});

test.each([
  ["none of the catalog", valkey(), "10", "INVALID_REQUEST"],
  ["the one that it has", valkey(), "8.1", "NOT_POSSIBLE: The service has version 8.1 already."],
  ["an older one", valkey({ version: "9" }), "8.1", "NOT_POSSIBLE: The service has version 9."],
])("a version is refused: %s", (_what, service, version, words) => {
  expect(() => requireNewer(service, version)).toThrow(words);
});

test("a single node has another image and version tried under it, with clients kept out", () => {
  const { after, operation } = beginUpgrade(valkey(), { version: "9", image: "sid-1" }, world(), {
    operationId: "o",
    now: 5,
  });
  expect(after.spec).toMatchObject({ version: "9", image: "sid-1", trial: { operationId: "o" } });
  expect(operation.spec).toMatchObject({
    type: "upgrade",
    work: {
      version: { from: "8.1", to: "9" },
      image: { from: "trixie-1", to: "sid-1", fromVersion: "8.1.1", toVersion: "9.1.2" },
    },
  });
});

test("replicas keep image and data while those of their primary are upgraded, with clients kept out", () => {
  const [primary] = postgresql().spec.nodes;
  if (primary === undefined) throw new Error("a service has a node");
  const nodes = [primary, replicaOf("r2", 2)];
  const statuses = nodes.map(({ id }) => ({ id, status: "Running", address: "a", publicAddress: "a" }) as const);
  const service = runningService({}, { ...postgresql().spec, nodes, nextNodeNumber: 3 }, { nodes: statuses });
  const { after } = beginUpgrade(service, { version: "18", image: "sid-1" }, worldOfData(), {
    operationId: "o",
    now: 5,
  });
  expect(after.spec).toMatchObject({ version: "18", image: "sid-1", trial: { operationId: "o" } });
  expect(after.spec.nodes.map(({ pinned }) => pinned)).toEqual([undefined, { image: "trixie-1", version: "17" }]);
});

test("each of several nodes keeps its version until its turn", () => {
  const [primary] = valkey().spec.nodes;
  if (primary === undefined) throw new Error("a service has a node");
  const statuses = [primary.id, "r2"].map(
    (id) => ({ id, status: "Running", address: "a", publicAddress: "a" }) as const,
  );
  const service = runningService(
    {},
    { ...valkey().spec, nodes: [primary, replicaOf("r2", 2)], nextNodeNumber: 3 },
    { nodes: statuses },
  );
  const { after } = beginUpgrade(service, { version: "9", image: "sid-1" }, world(), { operationId: "o", now: 5 });
  expect(after.spec.trial).toBeUndefined();
  expect(after.spec.nodes.map(({ pinned }) => pinned)).toEqual(
    [0, 1].map(() => expect.objectContaining({ version: "8.1", image: "trixie-1" })),
  );
});
