import { X509Certificate } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { connect as connectTcp } from "node:net";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import { create } from "@bufbuild/protobuf";
import { exportKey, newKeyPair } from "@holdfast/common/signing-key.ts";
import { EngineUserSchema, PeersSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { createTestAuthority } from "@holdfast/testing/controller/test-authority.ts";
import { createEngineMachine, type EngineMachine } from "@holdfast/testing/engines/engine-machine.ts";
import { kafkaVerifier, withUserSession } from "@holdfast/testing/engines/kafka-clients.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { operation, pattern, permission, resource } from "./access.ts";
import { createKafkaDriver } from "./driver.ts";
import { heartbeatTopic } from "./heartbeat.ts";
import { portsOf } from "./layout.ts";
import {
  type Api,
  alterScramCredentials,
  createAcls,
  createTopics,
  deleteAcls,
  describeAcls,
  fetch,
  incrementalAlterConfigs,
  metadata,
  produce,
} from "./protocol/apis.ts";
import {
  array,
  bool,
  type Codec,
  int16,
  int32,
  int8,
  nullableArray,
  nullableString,
  string,
  struct,
  uuid,
} from "./protocol/codec.ts";
import type { Connection } from "./protocol/connection.ts";
import { singleRecord } from "./protocol/record-batch.ts";

const skip = await requireRecipes(import.meta.filename, "kafka");
const nodeId = "orders-1.local.holdfast.test";
const address = "127.9.46.2";
const roles = { app_user: "admin", writer: "readwrite", reader: "readonly" } as const;
type User = keyof typeof roles;

const denied = { topic: 29, group: 30, cluster: 31 } as const;
const timeoutMs = 5_000;

const foreign = {
  resourceType: resource.cluster,
  resourceName: "kafka-cluster",
  patternType: pattern.literal,
  principal: "User:reader",
  host: "*",
  operation: operation.all,
  permission: permission.allow,
};

/** Calls that the driver does not need. */
const call = <Request>(
  key: number,
  version: number,
  request: Api<Request, unknown>["request"],
  response: Api<unknown, { readonly errorCode: number }>["response"],
) => ({ name: String(key), key, version, request, response });
/** The first fields of these responses; the others are not read. */
const throttled: Codec<{ readonly errorCode: number }> = {
  write: () => undefined,
  read(from) {
    int32.read(from);
    return { errorCode: int16.read(from) };
  },
};
// biome-ignore format: a table
const others = {
  alterReassignments: call(45, 0, struct({ timeoutMs: int32, topics: array(struct({ name: string, partitions: array(struct({ index: int32, replicas: nullableArray(int32) })) })) }), throttled),
  electLeaders:       call(43, 2, struct({ type: int8, topics: nullableArray(struct({ name: string, partitions: array(int32) })), timeoutMs: int32 }), throttled),
  updateFeatures:     call(57, 1, struct({ timeoutMs: int32, updates: array(struct({ feature: string, level: int16, upgradeType: int8 })), validateOnly: bool }), throttled),
  unregisterBroker:   call(64, 0, struct({ brokerId: int32 }), throttled),
  addVoter:           call(80, 0, struct({ clusterId: nullableString, timeoutMs: int32, voterId: int32, directoryId: uuid, listeners: array(struct({ name: string, host: string, port: int16 })) }), throttled),
  removeVoter:        call(81, 0, struct({ clusterId: nullableString, voterId: int32, directoryId: uuid }), throttled),
} as const;

const none = Buffer.alloc(16).toString("base64url");

/** Calls that no role may make, each with the error that it gets. */
// biome-ignore format: a table
const forbidden: readonly (readonly [name: string, code: number, send: (session: Connection) => Promise<number | undefined>])[] = [
  ["creating an ACL",          denied.cluster, async (session) => (await session.call(createAcls, { acls: [foreign] })).results[0]?.errorCode],
  ["deleting ACLs",            denied.cluster, async (session) => (await session.call(deleteAcls, { filters: [{ ...foreign, principal: null, host: null, resourceName: null }] })).results[0]?.errorCode],
  ["changing a password",      denied.cluster, async (session) => (await session.call(alterScramCredentials, { deletions: [{ name: "writer", mechanism: 1 }], upsertions: [] })).results[0]?.errorCode],
  ["changing the broker",      denied.cluster, async (session) => (await session.call(incrementalAlterConfigs, { resources: [{ type: 4, name: "1", configs: [{ name: "log.retention.ms", operation: 0, value: "1" }] }], validateOnly: false })).results[0]?.errorCode],
  ["changing all brokers",     denied.cluster, async (session) => (await session.call(incrementalAlterConfigs, { resources: [{ type: 4, name: "", configs: [{ name: "log.retention.ms", operation: 0, value: "1" }] }], validateOnly: false })).results[0]?.errorCode],
  ["moving partitions",        denied.cluster, async (session) => (await session.call(others.alterReassignments, { timeoutMs, topics: [] })).errorCode],
  ["electing leaders",         denied.cluster, async (session) => (await session.call(others.electLeaders, { type: 0, topics: null, timeoutMs })).errorCode],
  ["changing features",        denied.cluster, async (session) => (await session.call(others.updateFeatures, { timeoutMs, updates: [], validateOnly: false })).errorCode],
  ["removing a broker",        denied.cluster, async (session) => (await session.call(others.unregisterBroker, { brokerId: 1 })).errorCode],
  ["adding a voter",           denied.cluster, async (session) => (await session.call(others.addVoter, { clusterId: null, timeoutMs, voterId: 9, directoryId: none, listeners: [] })).errorCode],
  ["removing a voter",         denied.cluster, async (session) => (await session.call(others.removeVoter, { clusterId: null, voterId: 1, directoryId: none })).errorCode],
  ["creating a platform topic", denied.topic,  (session) => createTopic(session, "holdfast.mine")],
  ["creating an engine topic",  denied.topic,  (session) => createTopic(session, "__mine")],
  ["writing the heartbeat",     denied.topic,  (session) => write(session, heartbeatTopic)],
  ["writing offsets",           denied.topic,  (session) => write(session, "__consumer_offsets")],
  ["reading the heartbeat",     denied.topic,  (session) => read(session, heartbeatTopic)],
  ["reading offsets",           denied.topic,  (session) => read(session, "__consumer_offsets")],
];

async function createTopic(session: Connection, name: string) {
  const topic = { name, partitions: 1, replicationFactor: 1, assignments: [], configs: [] };
  return (await session.call(createTopics, { topics: [topic], timeoutMs, validateOnly: false })).topics[0]?.errorCode;
}

async function write(session: Connection, name: string) {
  const records = singleRecord(Buffer.from("foreign"), Date.now());
  const topics = [{ name, partitions: [{ index: 0, records }] }];
  const answer = await session.call(produce, { transactionalId: null, acks: -1, timeoutMs, topics });
  return answer.topics[0]?.partitions[0]?.errorCode;
}

async function read(session: Connection, name: string) {
  const partition = {
    index: 0,
    leaderEpoch: -1,
    fetchOffset: 0,
    lastFetchedEpoch: -1,
    startOffset: -1,
    maxBytes: 1_024,
  };
  const answer = await session.call(fetch, {
    replicaId: -1,
    maxWaitMs: 0,
    minBytes: 0,
    maxBytes: 1_024,
    isolationLevel: 0,
    sessionId: 0,
    sessionEpoch: -1,
    topics: [{ name, partitions: [partition] }],
    forgotten: [],
    rackId: "",
  });
  return answer.topics[0]?.partitions[0]?.errorCode;
}

describe.skipIf(skip !== undefined)("users of kafka", () => {
  let machine: EngineMachine;

  beforeAll(async () => {
    const verifier = kafkaVerifier("secret");
    const users = Object.entries(roles).map(([username, role]) =>
      create(EngineUserSchema, { username, role, verifier }),
    );
    machine = await createEngineMachine(async (deps) => createKafkaDriver(deps), "kafka", "3.9", {
      users,
      address,
      nodeId,
      peers: create(PeersSchema, {
        clusterId: "kafka",
        secret: "a planted secret",
        members: [{ nodeId, number: 1, hostname: nodeId, address }],
      }),
    });
    await machine.bringUp();
  });
  afterAll(() => machine?.remove());

  const as = <T>(user: User, work: (session: Connection) => Promise<T>) =>
    withUserSession(machine, { user, password: "secret" }, work);

  it.each(forbidden)("are refused %s", async (_, code, send) => {
    const found: Record<string, number | undefined> = {};
    for (const user of Object.keys(roles) as User[]) found[user] = await as(user, send);
    expect(found).toEqual({ app_user: code, writer: code, reader: code });
  });

  it("see no topic of the platform, and other users' rights only as admins", async () => {
    const all = { topics: null, allowAutoCreation: false, includeAuthorizedOperations: false };
    for (const user of Object.keys(roles) as User[])
      expect((await as(user, (session) => session.call(metadata, all))).topics).toEqual([]);
    const every = {
      resourceType: resource.any,
      resourceName: null,
      patternType: pattern.any,
      principal: null,
      host: null,
    };
    const filter = { ...every, operation: operation.any, permission: permission.any };
    const codes = { app_user: 0, writer: denied.cluster, reader: denied.cluster };
    for (const [user, code] of Object.entries(codes))
      expect((await as(user as User, (session) => session.call(describeAcls, filter))).errorCode).toBe(code);
  });

  it("create topics only as admins", async () => {
    expect(await as("reader", (session) => createTopic(session, "orders"))).toBe(denied.topic);
    expect(await as("writer", (session) => createTopic(session, "orders"))).toBe(denied.topic);
    expect(await as("app_user", (session) => createTopic(session, "orders"))).toBe(0);
    expect(await as("writer", (session) => write(session, "orders"))).toBe(0);
    expect(await as("reader", (session) => write(session, "orders"))).toBe(denied.topic);
    expect(await as("reader", (session) => read(session, "orders"))).toBe(0);
  });

  it("cannot write while the disk is nearly full, and can read and delete", async () => {
    const { driver } = machine;
    await driver.reload({ ...machine.instance, writesBlocked: true }, machine.signal);
    expect(await as("app_user", (session) => write(session, "orders"))).toBe(denied.topic);
    expect(await as("reader", (session) => read(session, "orders"))).toBe(0);
    expect(await as("app_user", (session) => createTopic(session, "more"))).toBe(denied.topic);
    const { checks } = await driver.observe(machine.instance, machine.signal);
    expect(checks.find(({ name }) => name === "liveness")).toMatchObject({ status: "healthy" });
    await driver.reload(machine.instance, machine.signal);
    expect(await as("writer", (session) => write(session, "orders"))).toBe(0);
  });

  it("reach no port of the broker but through the front", async () => {
    const { clients: _front, privateClients: _privateFront, exporter: _exporter, ...own } = portsOf(machine.instance);
    for (const port of Object.values(own)) {
      // A TLS 1.3 client learns that its certificate is missing with the first bytes that it reads.
      const ended = await new Promise<string>((resolve) => {
        const socket = connectTls({ host: address, port, rejectUnauthorized: false });
        socket.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
        socket.once("close", () => resolve("closed"));
        // ApiVersions, version 0, which needs no rights.
        socket.write(Buffer.from("0000000a00120000000000010000", "hex"));
        socket.once("data", () => resolve("answered"));
      });
      expect(ended).toMatch(/CERTIFICATE_REQUIRED|BAD_CERTIFICATE|ECONNRESET|EPIPE|closed/);
      const plain = await new Promise<string>((resolve) => {
        const socket = connectTcp({ host: address, port });
        socket.once("data", (bytes) => resolve(bytes.length > 32 ? "answered" : "alert"));
        socket.once("error", () => resolve("closed"));
        socket.once("close", () => resolve("closed"));
        socket.write(Buffer.from("0000000a00120000000000010000", "hex"));
      });
      expect(plain).not.toBe("answered");
    }
  });

  it("get a renewed certificate without a restart, once it is reloaded", async () => {
    const { paths, spec } = machine.instance;
    const [authority, { publicKey, privateKey }] = await Promise.all([createTestAuthority(), newKeyPair()]);
    const leaf = await authority.issue({ commonName: nodeId, names: [nodeId], publicKey, client: true });
    const certificate = new X509Certificate(leaf.der);
    const before = await readFile(join(paths.tls, "ca.crt"), "utf8");
    const files = {
      "server.key": await exportKey(privateKey),
      "server.crt": certificate.toString(),
      // Both authorities are trusted while one replaces the other.
      "ca.crt": `${before}${authority.trustBundle}`,
    };
    for (const [name, content] of Object.entries(files)) await writeFile(join(paths.tls, name), content);
    await machine.driver.reload(machine.instance, machine.signal);
    const renewed = certificate.fingerprint256;
    const presented = () =>
      new Promise<string>((resolve, reject) => {
        const socket = connectTls({ host: spec.address, port: spec.port, rejectUnauthorized: false }, () => {
          resolve(socket.getPeerX509Certificate()?.fingerprint256 ?? "");
          socket.destroy();
        });
        socket.once("error", reject);
      });
    await waitUntil("clients get it", async () => (await presented()) === renewed);
    const { checks } = await machine.driver.observe(machine.instance, machine.signal);
    expect(checks.filter(({ status }) => status !== "healthy")).toEqual([]);
  });
});
