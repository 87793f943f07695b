import { connect as connectTcp } from "node:net";
import { connect as connectTls } from "node:tls";
import { create } from "@bufbuild/protobuf";
import { EngineUserSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { EngineMachine } from "@holdfast/testing/engines/engine-machine.ts";
import { type OpensearchClient, openClient, opensearchVerifier } from "@holdfast/testing/engines/opensearch-clients.ts";
import { createOpensearchMachine } from "@holdfast/testing/engines/opensearch-machine.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { call } from "./api.ts";
import { createRepository, readSnapshot, startSnapshot } from "./backup/repository.ts";
import { portsOf } from "./layout.ts";

const skip = await requireRecipes(import.meta.filename, "opensearch");
const address = "127.9.51.2";
const roles = { app_user: "admin", writer: "readwrite", reader: "readonly" } as const;
type User = keyof typeof roles;
const users = Object.keys(roles) as User[];
type Attempt = Parameters<OpensearchClient["send"]>;

const snapshot = { type: "fs", settings: { location: "/tmp" } };
const account = { current_password: "secret", password: "Another-secret-1" };
const platform = ".holdfast-heartbeat";
const security = ".opendistro_security";

/** Calls that no user may make. */
const forbidden: readonly Attempt[] = [
  ["GET", "/_plugins/_security/api/internalusers"],
  ["PUT", "/_plugins/_security/api/internalusers/intruder", { password: "Another-secret-1" }],
  ["PUT", "/_plugins/_security/api/roles/all", { cluster_permissions: ["*"] }],
  ["PUT", "/_plugins/_security/api/rolesmapping/all_access", { users: ["app_user"] }],
  ["PUT", "/_plugins/_security/api/account", account],
  ["GET", "/_plugins/_security/api/securityconfig"],
  ["DELETE", "/_plugins/_security/api/cache"],
  ["PUT", "/_cluster/settings", { persistent: { "cluster.max_shards_per_node": 5 } }],
  ["POST", "/_cluster/reroute", {}],
  ["POST", "/_cluster/voting_config_exclusions?node_names=node-1"],
  ["PUT", "/_snapshot/mine", snapshot],
  ["GET", "/_snapshot"],
  ["GET", "/_snapshot/holdfast/backup"],
  ["DELETE", "/_snapshot/holdfast/backup"],
  ["POST", "/_snapshot/holdfast/backup/_restore"],
  ["POST", "/_snapshot/holdfast/backup/_restore", { indices: "orders", rename_pattern: "o", rename_replacement: "p" }],
  ["PUT", "/_snapshot/holdfast/mine", {}],
  ["GET", "/_cat/repositories"],
  ["GET", "/_mapping"],
  ["GET", `/${security}/_mapping`],
  ["GET", `/${platform}/_mapping`],
  ["GET", "/_validate/query"],
  ["GET", "/_cat/pit_segments/_all"],
  ["GET", "/_dangling"],
  ["POST", `/${platform}/_search/point_in_time?keep_alive=1m&expand_wildcards=all`],
  ["POST", "/_nodes/reload_secure_settings"],
  ["DELETE", `/${platform}`],
  ["PUT", `/${platform}/_doc/1`, { value: "x" }],
  ["GET", `/${platform}/_doc/1`],
  ["POST", `/${platform}/_close`],
  ["PUT", `/${platform}/_settings`, { index: { number_of_replicas: 0 } }],
  ["POST", "/_aliases", { actions: [{ add: { index: platform, alias: "mine" } }] }],
  ["PUT", `/${security}/_doc/internalusers`, { value: "x" }],
  ["DELETE", `/${security}`],
  ["POST", `/${security}/_close`],
  ["POST", "/_aliases", { actions: [{ add: { index: security, alias: "mine" } }] }],
  ["DELETE", "/*?expand_wildcards=all"],
  ["PUT", "/_all/_settings?expand_wildcards=all", { index: { number_of_replicas: 0 } }],
];

/** Calls that only admins may make. */
const forAdmins: readonly Attempt[] = [
  ["PUT", "/_index_template/t", { index_patterns: ["t-*"] }],
  ["PUT", "/_ingest/pipeline/p", { processors: [{ set: { field: "seen", value: true } }] }],
  ["PUT", "/_search/pipeline/p", { request_processors: [] }],
  ["PUT", "/_scripts/s", { script: { lang: "painless", source: "1 + 1" } }],
  ["POST", "/_aliases", { actions: [{ add: { index: "orders", alias: "all-orders" } }] }],
  ["PUT", "/orders/_settings", { index: { refresh_interval: "2s" } }],
  ["DELETE", "/_search/point_in_time/_all"],
  ["POST", "/_cache/clear"],
];

/** Calls that those who write may make. */
const forWriters: readonly Attempt[] = [
  ["POST", "/_refresh"],
  ["POST", "/_flush"],
  ["POST", "/orders/_refresh"],
];

/** Calls without contents of indices, which every role may make, also before the first index of a user. */
const withoutContents: readonly Attempt[] = [
  ["GET", "/_cat/recovery"],
  ["GET", "/_cat/segments"],
  ["GET", "/_cat/segment_replication"],
  ["GET", "/_recovery"],
  ["GET", "/_segments"],
  ["GET", "/_shard_stores"],
  ["GET", "/_data_stream"],
  ["GET", "/_data_stream/_stats"],
  ["GET", "/_search/point_in_time/_all"],
  ["POST", "/_analyze", { text: "some words" }],
  ["POST", "/_scripts/painless/_execute", { script: { source: "6 * 7" } }],
];

/** Calls about all indices, which every role may make once there is an index of a user. */
const aboutAll: readonly Attempt[] = [
  ["GET", "/_cat/indices"],
  ["GET", "/_cat/shards"],
  ["GET", "/_cat/aliases"],
  ["GET", "/_cat/count"],
  ["GET", "/_alias"],
  ["GET", "/_stats"],
  ["GET", "/_settings"],
  ["GET", "/_resolve/index/*"],
  ["GET", "/_search"],
  ["GET", "/_count"],
];

/** Calls that every role may make. */
const forAll: readonly Attempt[] = [
  ["GET", "/"],
  ["GET", "/_cluster/health"],
  ["GET", "/_cat/nodes"],
  ...withoutContents,
  ...aboutAll,
  ["GET", "/orders/_doc/1"],
  ["POST", "/orders/_search", { query: { match_all: {} } }],
  ["GET", "/orders/_count"],
  ["GET", "/order*/_mapping"],
  ["GET", "/orders/_mapping"],
  ["POST", "/_msearch", `{"index":"orders"}\n{"query":{"match_all":{}}}\n`],
  ["POST", "/_mget", { docs: [{ _index: "orders", _id: "1" }] }],
  ["POST", "/orders/_search?scroll=1m", { query: { match_all: {} } }],
];

describe.skipIf(skip !== undefined)("users of opensearch", () => {
  let machine: EngineMachine;
  const clients = new Map<User, OpensearchClient>();
  /** Calls that were refused before the first index of a user. */
  const refusedWhenEmpty: string[] = [];

  beforeAll(async () => {
    const verifier = opensearchVerifier("secret");
    machine = await createOpensearchMachine(address, {
      users: Object.entries(roles).map(([username, role]) => create(EngineUserSchema, { username, role, verifier })),
    });
    await machine.bringUp();
    for (const user of users) clients.set(user, openClient(machine, { user, password: "secret" }));
    for (const user of users)
      for (const attempt of withoutContents)
        if ((await statusOf(user, attempt)) !== 200) refusedWhenEmpty.push(`${user} ${attempt[1]}`);
    expect(await statusOf("app_user", ["PUT", "/orders/_doc/1?refresh=true", { value: 1 }])).toBe(201);
    // Of a backup that runs: the engine answers 404 for an absent snapshot before it checks rights.
    const { instance, signal } = machine;
    await createRepository(instance, 1 << 20, signal);
    await startSnapshot(instance, signal);
    const isComplete = async () => (await readSnapshot(instance, signal)).state === "SUCCESS";
    await waitUntil("there is a snapshot", isComplete);
  });
  afterAll(async () => {
    for (const client of clients.values()) await client.close();
    await machine?.remove();
  });

  const as = (user: User) => clients.get(user) as OpensearchClient;
  const statusOf = async (user: User, attempt: Attempt) => (await as(user).send(...attempt)).status;
  const statuses = async (attempt: Attempt) =>
    Object.fromEntries(await Promise.all(users.map(async (user) => [user, await statusOf(user, attempt)] as const)));

  const titled = (attempts: readonly Attempt[]) =>
    attempts.map((attempt) => [`${attempt[0]} ${attempt[1]}`, attempt] as const);

  it.each(titled(forbidden))("are refused: %s", async (_, attempt) => {
    expect(await statuses(attempt)).toEqual({ app_user: 403, writer: 403, reader: 403 });
  });

  it.each(titled(forAdmins))("may only as admins: %s", async (_, attempt) => {
    expect(await statuses(attempt)).toEqual({ app_user: 200, writer: 403, reader: 403 });
  });

  it.each(titled(forWriters))("may only if they write: %s", async (_, attempt) => {
    expect(await statuses(attempt)).toEqual({ app_user: 200, writer: 200, reader: 403 });
  });

  it.each(titled(forAll))("may in each role: %s", async (_, attempt) => {
    expect(await statuses(attempt)).toEqual({ app_user: 200, writer: 200, reader: 200 });
  });

  it("try a script without a document of the platform or of the security plugin", async () => {
    for (const [index, id] of [
      [platform, "1"],
      [security, "internalusers"],
    ] as const)
      for (const user of users) {
        const script = { source: "doc['_id'].value == params.id", params: { id } };
        const setup = { context: "filter", context_setup: { index, document: {} } };
        const { body } = await as(user).send("POST", "/_scripts/painless/_execute", { script, ...setup });
        expect(body).toEqual({ result: false });
      }
  });

  it("end their own points in time in each role", async () => {
    for (const user of users) {
      const opened = await as(user).send("POST", "/orders/_search/point_in_time?keep_alive=1m");
      const { pit_id: id } = opened.body as { pit_id: string };
      expect(await statusOf(user, ["DELETE", "/_search/point_in_time", { pit_id: [id] }])).toBe(200);
    }
  });

  it("create a data stream by a first document as readwrite, from an admin's template", async () => {
    const template = { index_patterns: ["events-*"], data_stream: {} };
    expect(await statusOf("app_user", ["PUT", "/_index_template/events", template])).toBe(200);
    const document = { "@timestamp": "2026-01-01T00:00:00Z" };
    const create = (user: User, name: string) => statusOf(user, ["POST", `/${name}/_doc?refresh=true`, document]);
    expect([await create("writer", "events-a"), await create("reader", "events-b")]).toEqual([201, 403]);
    const line = JSON.stringify(document);
    const bulk = await as("writer").send("POST", "/_bulk?refresh=true", `{"create":{"_index":"events-c"}}\n${line}\n`);
    expect(bulk.body).toMatchObject({ errors: false });
    for (const name of ["events-a", "events-c"])
      expect((await as("reader").send("GET", `/${name}/_count`)).body).toMatchObject({ count: 1 });
    for (const method of ["PUT", "DELETE"] as const)
      expect(await statusOf("writer", [method, "/_data_stream/events-d"])).toBe(403);
    expect(await statusOf("app_user", ["DELETE", "/_data_stream/events-*"])).toBe(200);
    expect(await statusOf("app_user", ["DELETE", "/_index_template/events"])).toBe(200);
  });

  it("see figures before there is an index", () => {
    expect(refusedWhenEmpty).toEqual([]);
  });

  it("see no document of the platform or of the security plugin", async () => {
    for (const index of [platform, security])
      for (const user of users) {
        const { status, body } = await as(user).send("POST", `/${index}/_search`, {});
        // The security plugin answers a search of its index as if it had no documents.
        const { hits } = body as { hits?: { hits: unknown[] } };
        expect(status === 403 || hits?.hits.length === 0, `${user} ${index}: ${status}`).toBe(true);
      }
    const bulk = await as("app_user").send("POST", "/_bulk", `{"index":{"_index":"${platform}"}}\n{"value":1}\n`);
    expect(bulk.body).toMatchObject({ errors: true, items: [{ index: { status: 403 } }] });
  });

  it("write as readwrite, and only read as readonly", async () => {
    const write = (user: User) => statusOf(user, ["PUT", "/orders/_doc/2", { value: 2 }]);
    expect([await write("app_user"), await write("writer"), await write("reader")]).toEqual([201, 200, 403]);
    expect(await statusOf("writer", ["PUT", "/created/_doc/1", { value: 1 }])).toBe(201);
    expect(await statusOf("writer", ["DELETE", "/created"])).toBe(403);
    const bulk = await as("writer").send("POST", "/_bulk", `{"index":{"_index":"orders"}}\n{"value":3}\n`);
    expect(bulk.body).toMatchObject({ errors: false });
    expect(await statusOf("app_user", ["DELETE", "/created"])).toBe(200);
  });

  it("cannot write while the disk is nearly full, and can read and delete", async () => {
    const { driver, instance, signal } = machine;
    await driver.reload({ ...instance, writesBlocked: true }, signal);
    for (const user of users) expect(await statusOf(user, ["PUT", "/orders/_doc/3", { value: 3 }])).toBe(403);
    expect(await statusOf("app_user", ["PUT", "/more"])).toBe(403);
    const bulk = await as("app_user").send("POST", "/_bulk", `{"index":{"_index":"orders"}}\n{"value":3}\n`);
    expect(bulk.body).toMatchObject({ errors: true });
    expect(await statusOf("reader", ["GET", "/orders/_doc/1"])).toBe(200);
    expect(await statusOf("writer", ["DELETE", "/orders/_doc/2"])).toBe(200);
    const { checks } = await driver.observe(instance, signal);
    expect(checks.find(({ name }) => name === "liveness")).toMatchObject({ status: "healthy" });
    await driver.reload(instance, signal);
    expect(await statusOf("writer", ["PUT", "/orders/_doc/3", { value: 3 }])).toBe(201);
  });

  it("have indices that the driver lists and deletes by their full names", async () => {
    const { driver, instance, signal } = machine;
    const listed = await driver.indices?.list(instance, signal);
    expect(listed?.map(({ name }) => name)).toEqual(["orders"]);
    expect(listed?.[0]).toMatchObject({ health: "green", shards: 1, replicas: 0 });
    for (const name of ["*", "_all", "orders,x", "orders*", "all-orders", platform, security, "absent"])
      expect(await driver.indices?.drop(instance, name, signal).catch(() => "refused"), name).not.toEqual({
        existed: true,
      });
    expect(await driver.indices?.drop(instance, "orders", signal)).toEqual({ existed: true });
    expect(await driver.indices?.list(instance, signal)).toEqual([]);
  });

  it("reach no port of the engine but through the front", async () => {
    const { http, transport } = portsOf(machine.instance);
    for (const port of [http, transport]) {
      const request = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
      // A TLS 1.3 client learns that its certificate is missing with the first bytes that it reads.
      const ended = await new Promise<string>((resolve) => {
        const socket = connectTls({ host: address, port, rejectUnauthorized: false });
        socket.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
        socket.once("close", () => resolve("closed"));
        socket.write(request);
        socket.once("data", () => resolve("answered"));
      });
      expect(ended).not.toBe("answered");
      const plain = await new Promise<string>((resolve) => {
        const socket = connectTcp({ host: address, port });
        socket.once("data", (bytes) => resolve(bytes.length > 32 ? "answered" : "alert"));
        socket.once("error", () => resolve("closed"));
        socket.once("close", () => resolve("closed"));
        socket.write(request);
      });
      expect(plain).not.toBe("answered");
    }
  });

  it("have every live parameter of the catalog applied by the engine", async () => {
    const { driver, instance, signal } = machine;
    const { effectiveParameters, pendingRestart } = await driver.observe(instance, signal);
    expect(pendingRestart).toEqual([]);
    const live = {
      "cluster.max_shards_per_node": "500",
      "script.max_size_in_bytes": "1000",
      "search.max_buckets": "9",
    };
    machine.change({ parameters: live });
    await driver.reload(machine.instance, signal);
    const after = (await driver.observe(machine.instance, signal)).effectiveParameters;
    expect(after).toEqual({ ...effectiveParameters, ...live });
    await expect(
      call(instance, { method: "PUT", path: "/_cluster/settings", body: { persistent: { "no.such": 1 } } }, signal),
    ).rejects.toThrow("no.such");
  });
});
