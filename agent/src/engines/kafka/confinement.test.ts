import { X509Certificate } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { connect as connectTcp } from "node:net";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import { create } from "@bufbuild/protobuf";
import { exportKey, newKeyPair } from "@holdfast/common/signing-key.ts";
import { EngineUserSchema, PeersSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { createTestAuthority } from "@holdfast/testing/controller/test-authority.ts";
import {
  answeredKeys,
  createTopic,
  denied,
  forAdmins,
  forbidden,
  harmless,
  readTopicPartition as read,
  sendEmpty,
  writeTopic as write,
} from "@holdfast/testing/engines/kafka-attempts.ts";
import { createEngineMachine, type EngineMachine } from "@holdfast/testing/engines/engine-machine.ts";
import { kafkaVerifier, withUserSession } from "@holdfast/testing/engines/kafka-clients.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { operation, pattern, permission, resource } from "./access.ts";
import { createKafkaDriver } from "./driver.ts";
import { portsOf } from "./layout.ts";
import { describeAcls, metadata } from "./protocol/apis.ts";
import type { Connection } from "./protocol/connection.ts";

const skip = await requireRecipes(import.meta.filename, "kafka");
const nodeId = "orders-1.local.holdfast.test";
const address = "127.9.46.2";
const roles = { app_user: "admin", writer: "readwrite", reader: "readonly" } as const;
type User = keyof typeof roles;

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

  it.each(forbidden.map((each) => [each.what, each] as const))("are refused: %s", async (_, { code, send }) => {
    const found: Record<string, number | undefined> = {};
    for (const user of Object.keys(roles) as User[]) found[user] = await as(user, send);
    expect(found).toEqual({ app_user: code, writer: code, reader: code });
  });

  it.each(forAdmins.map((each) => [each.what, each] as const))("read only as admins: %s", async (_, { send }) => {
    const found: Record<string, number | undefined> = {};
    for (const user of Object.keys(roles) as User[]) found[user] = await as(user, send);
    expect(found).toEqual({ app_user: 0, writer: denied.cluster, reader: denied.cluster });
  });

  it("get an answer to no call that was not judged", async () => {
    const answered = await as("app_user", answeredKeys);
    expect(answered.length).toBeGreaterThan(50);
    const judged = new Set([...harmless.keys(), ...[...forbidden, ...forAdmins].map(({ key }) => key)]);
    expect(answered.filter((key) => !judged.has(key))).toEqual([]);
    // Those between brokers and controllers are among the others.
    for (let key = 0; key < 128; key += 1)
      if (!answered.includes(key))
        await expect(
          as("app_user", (session) => sendEmpty(session, key)),
          String(key),
        ).rejects.toThrow("the broker closed the connection");
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
