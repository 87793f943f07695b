import { create } from "@bufbuild/protobuf";
import { InstanceObservationSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { expect, test } from "vitest";
import { readyHost } from "@holdfast/testing/platform/ready-host.ts";
import { runningService } from "@holdfast/testing/controller/service-object.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import { replicaOf } from "@holdfast/testing/controller/observed-service.ts";
import { beginUpgrade } from "./begin-maintenance.ts";
import { registerChanges } from "./image-inventory.ts";
import type { MaintenanceContext } from "./pending-update.ts";
import { planVersionUpgrade, requireNewer } from "./upgrade-plan.ts";

const valkey = (spec: Partial<ManagedServiceObject["spec"]> = {}) =>
  runningService({}, { databaseType: "valkey", version: "8.1", image: "trixie-1", ...spec });

function context(change: Partial<MaintenanceContext> = {}, imageIds = ["trixie-1", "sid-1"]): MaintenanceContext {
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
    snapshotProblem: "",
    restorePoint: 1,
    instance: undefined,
    now: 0,
    ...change,
  };
}

const found = (service: ManagedServiceObject, seen: MaintenanceContext) =>
  planVersionUpgrade(service, "9", seen).findings.map(({ code, blocking }) => (blocking ? `${code}!` : code));

// biome-ignore format: a table, aligned so that it reads as one
test.each<[what: string, ManagedServiceObject, MaintenanceContext, codes: string[]]>([
  ["a single node is down",                           valkey(),                                           context(),                                              ["downtime"]],
  ["a host lacks the image",                          valkey(),                                           context({}, ["trixie-1"]),                              ["no_image!", "downtime"]],
  ["a parameter that the version lacks",              valkey({ parameters: { frobnicate: "1" } }),        context(),                                              ["parameter_unknown!", "downtime"]],
  ["no snapshot, but a backup",                       valkey(),                                           context({ snapshotProblem: "ext4" }),                       ["downtime", "no_snapshot"]],
  ["neither snapshot nor backup",                     valkey(),                                           context({ snapshotProblem: "ext4", restorePoint: undefined }), ["no_backup!", "downtime", "no_snapshot"]],
  ["no backup, but a snapshot", valkey(),                                           context({ restorePoint: undefined }),                   ["downtime", "no_backup"]],
  ["a stopped service",                               valkey({ power: "off" }),                            context(),                                              ["not_ready!", "downtime"]],
])("the findings of an upgrade: %s", (_what, service, seen, codes) => {
  expect(found(service, seen)).toEqual(codes);
});

const postgresql = (spec: Partial<ManagedServiceObject["spec"]> = {}) =>
  runningService({}, { image: "trixie-1", ...spec });

function contextOfData(change: Partial<MaintenanceContext> = {}, libc = "2.41"): MaintenanceContext {
  const facts = [
    { engine: "postgresql", version: "17", available: true, image: "trixie-1", textLibraries: { libc: "2.41" } },
    { engine: "postgresql", version: "18", available: true, image: "sid-1", textLibraries: { libc } },
  ];
  const images = [...registerChanges(facts, [], new Set(), 0).added];
  return context({ images, snapshotProblem: "ext4", ...change });
}

const texts = create(InstanceObservationSchema, { textLibraries: ["libc"] });

// biome-ignore format: a table, aligned so that it reads as one
test.each<[what: string, ManagedServiceObject, MaintenanceContext, obstacles: { code: string; message: string }[], codes: string[]]>([
  ["the old data stay on any file system", postgresql(),                                    contextOfData(),                             [],                                     ["downtime"]],
  ["no backup",                                      postgresql(),                                    contextOfData({ restorePoint: undefined }),  [],                                     ["no_backup!", "downtime"]],
  ["replicas",                                       postgresql({ nodes: [...postgresql().spec.nodes, replicaOf("r2", 2)] }), contextOfData(),     [],                                     ["replicas", "downtime"]],
  ["a primary change in progress",                   postgresql({ primaryChange: { from: "a", to: "b", step: "promote", since: 0 } }), contextOfData(),               [],                                     ["not_ready!", "downtime"]],
  ["a replica without its data",                     postgresql({ nodes: [...postgresql().spec.nodes, { ...replicaOf("r2", 2), joining: true }] }), contextOfData(), [],                     ["replicas!", "downtime"]],
  ["a replica with outdated data",                   postgresql({ nodes: [...postgresql().spec.nodes, { ...replicaOf("r2", 2), pinned: { image: "bookworm-1", version: "16" } }] }), contextOfData(), [], ["replicas!", "downtime"]],
  ["obstacles in the data",                          postgresql(),                                    contextOfData(),                             [{ code: "no_room", message: "" }],     ["no_room!", "downtime"]],
  ["another sort order in use",                      postgresql(),                                    contextOfData({ instance: texts }, "2.43"),  [],                                     ["text_order!", "downtime"]],
  ["another sort order that is not in use",          postgresql(),                                    contextOfData({}, "2.43"),                   [],                                     ["downtime"]],
])("the findings of an upgrade of data: %s", (_what, service, seen, obstacles, codes) => {
  const { findings } = planVersionUpgrade(service, "18", seen, obstacles);
  expect(findings.map(({ code, blocking }) => (blocking ? `${code}!` : code))).toEqual(codes);
});

test("an accepted change of the sort order neither blocks an upgrade nor rolls it back", () => {
  const seen = contextOfData({ instance: texts }, "2.43");
  const { findings } = planVersionUpgrade(postgresql(), "18", seen, [], true);
  expect(findings.map(({ code, blocking }) => (blocking ? `${code}!` : code))).toEqual(["text_order", "downtime"]);
  const requested = { operationId: "o", now: 5, acceptsTextOrder: true };
  const { operation } = beginUpgrade(postgresql(), { version: "18", image: "sid-1" }, seen, requested);
  expect(operation.spec).toMatchObject({ work: { acceptsTextOrder: true } });
});

test.each([
  ["a version that the catalog lacks", valkey(), "10", "INVALID_REQUEST"],
  ["the current version", valkey(), "8.1", "NOT_POSSIBLE: The service has version 8.1 already."],
  ["an older one", valkey({ version: "9" }), "8.1", "NOT_POSSIBLE: The service has version 9."],
])("a version is refused: %s", (_what, service, version, words) => {
  expect(() => requireNewer(service, version)).toThrow(words);
});

test("a single node runs a canary of another image and version, with clients refused", () => {
  const { after, operation } = beginUpgrade(valkey(), { version: "9", image: "sid-1" }, context(), {
    operationId: "o",
    now: 5,
  });
  expect(after.spec).toMatchObject({ version: "9", image: "sid-1", canary: { operationId: "o" } });
  expect(operation.spec).toMatchObject({
    type: "upgrade",
    work: {
      version: { from: "8.1", to: "9" },
      image: { from: "trixie-1", to: "sid-1", fromVersion: "8.1.1", toVersion: "9.1.2" },
    },
  });
});

test("replicas retain image and data while the primary's are upgraded, with clients refused", () => {
  const [primary] = postgresql().spec.nodes;
  if (primary === undefined) throw new Error("a service has a node");
  const nodes = [primary, replicaOf("r2", 2)];
  const statuses = nodes.map(({ id }) => ({ id, status: "Running", address: "a", publicAddress: "a" }) as const);
  const service = runningService({}, { ...postgresql().spec, nodes, nextNodeNumber: 3 }, { nodes: statuses });
  const { after } = beginUpgrade(service, { version: "18", image: "sid-1" }, contextOfData(), {
    operationId: "o",
    now: 5,
  });
  expect(after.spec).toMatchObject({ version: "18", image: "sid-1", canary: { operationId: "o" } });
  expect(after.spec.nodes.map(({ pinned }) => pinned)).toEqual([undefined, { image: "trixie-1", version: "17" }]);
});

test("each of several nodes retains its version until it is next in the rolling update", () => {
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
  const { after } = beginUpgrade(service, { version: "9", image: "sid-1" }, context(), { operationId: "o", now: 5 });
  expect(after.spec.canary).toBeUndefined();
  expect(after.spec.nodes.map(({ pinned }) => pinned)).toEqual(
    [0, 1].map(() => expect.objectContaining({ version: "8.1", image: "trixie-1" })),
  );
});
