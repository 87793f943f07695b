import { execFile } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect as connectTcp } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import { promisify } from "node:util";
import { findImage, imagesDirectory } from "@holdfast/image/node-image.ts";
import { type Admin, Kafka, logLevel } from "kafkajs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { addressOf } from "@holdfast/testing/api/clients.ts";
import type { PageJson, ProblemJson } from "@holdfast/testing/api/service-json.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { killAtOnce } from "@holdfast/testing/platform/platform-processes.ts";
import { asRoot, testUid } from "@holdfast/testing/platform/platform-software.ts";
import {
  createServices,
  expectStatus,
  type RunningService,
  type Services,
} from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

interface MetricsJson {
  readonly series: readonly { readonly metric: string; readonly points: readonly unknown[] }[];
}

interface KafkaConnection {
  readonly uri: string;
  readonly database: string;
  readonly bootstrap_servers: string | null;
  readonly security_protocol: string | null;
  readonly sasl_mechanisms: readonly string[];
}

const execute = promisify(execFile);
const skip = await requireRecipes(import.meta.filename, "kafka");

describe.skipIf(skip !== undefined)("a managed Kafka", () => {
  let platform: Platform;
  let services: Services;
  let bus: RunningService;

  beforeAll(async () => {
    platform = await startPlatform();
    services = createServices(platform);
    const parameters = { "group.initial.rebalance.delay.ms": "0" };
    bus = await services.createRunning("bus", { database_type: "kafka", parameters });
  });
  afterAll(() => platform?.remove());

  const path = (rest = "") => `/managed-services/${bus.service.id}${rest}`;

  /** A client whose connections resolve the names that brokers advertise by the platform's DNS, as users' do. */
  function clientOf({ username = "app_user", password = bus.password } = {}): Kafka {
    const { host, port, ca_certificate: ca } = bus.connection;
    return new Kafka({
      clientId: "test",
      brokers: [`${host}:${port}`],
      logLevel: logLevel.NOTHING,
      ssl: true,
      sasl: { mechanism: "scram-sha-256", username, password },
      retry: { retries: 3, initialRetryTime: 100 },
      socketFactory({ host: name, port: to, onConnect }) {
        const tcp = connectTcp({
          host: name,
          port: to,
          lookup: (hostname, options, done) => {
            const answer = (address: string) =>
              options.all === true ? done(null, [{ address, family: 4 }]) : done(null, address, 4);
            addressOf(platform, hostname).then(answer, (error: Error) => done(error, ""));
          },
        });
        const socket = connectTls({ socket: tcp, ca, servername: name }, onConnect);
        tcp.on("error", (error) => socket.destroy(error));
        return socket;
      },
    });
  }

  async function asAdmin<T>(work: (admin: Admin) => Promise<T>, login = {}): Promise<T> {
    const admin = clientOf(login).admin();
    try {
      await admin.connect();
      return await work(admin);
    } finally {
      await admin.disconnect();
    }
  }

  async function send(values: readonly string[], login = {}): Promise<void> {
    const producer = clientOf(login).producer();
    try {
      await producer.connect();
      await producer.send({ topic: "orders", acks: -1, messages: values.map((value) => ({ key: value, value })) });
    } finally {
      await producer.disconnect();
    }
  }

  /** All values of the topic, in a new consumer group. */
  async function receive(count: number, groupId: string, login = {}): Promise<string[]> {
    const consumer = clientOf(login).consumer({ groupId });
    const values: string[] = [];
    try {
      await consumer.connect();
      await consumer.subscribe({ topics: ["orders"], fromBeginning: true });
      await new Promise<void>((resolve, reject) => {
        consumer.on("consumer.crash", ({ payload }) => reject(payload.error));
        const eachMessage = async ({ message }: { message: { value: Buffer | null } }) => {
          values.push(message.value?.toString() ?? "");
          if (values.length === count) resolve();
        };
        consumer.run({ eachMessage }).catch(reject);
      });
    } finally {
      await consumer.disconnect();
    }
    return values.toSorted();
  }

  const reveal = async (user: string) =>
    expectStatus(await platform.rest.post<{ password: string }>(path(`/database-users/${user}/reveal-password`)), 200)
      .json.password;

  it("has the settings of its clients in its connection", async () => {
    const { host } = bus.connection;
    const { json } = expectStatus(await platform.rest.get<KafkaConnection>(path("/connection")), 200);
    const [node] = bus.connection.nodes;
    expect(json).toMatchObject({
      uri: `${host}:9092`,
      bootstrap_servers: `${node?.hostname}:9092`,
      security_protocol: "SASL_SSL",
      sasl_mechanisms: ["SCRAM-SHA-256", "SCRAM-SHA-512"],
    });
  });

  it("is written and read by a client that verifies the names of the service and of the broker", async () => {
    await asAdmin((admin) =>
      admin.createTopics({ topics: [{ topic: "orders", numPartitions: 3 }], waitForLeaders: true }),
    );
    await send(["one", "two", "three"]);
    expect(await receive(3, "readers")).toEqual(["one", "three", "two"]);
    const listed = await asAdmin((admin) => admin.listTopics());
    expect(listed).toEqual(["orders"]);
  });

  it.skipIf(!asRoot)("is read by kcat, by name", async () => {
    const image = findImage(imagesDirectory(process.env), "kafka");
    const directory = mkdtempSync(join(tmpdir(), "holdfast-client-"));
    chmodSync(directory, 0o755);
    const { host, port, ca_certificate: ca, nodes } = bus.connection;
    const names = [host, ...nodes.map(({ hostname }) => hostname)];
    const lines = await Promise.all(names.map(async (name) => `${await addressOf(platform, name)} ${name}\n`));
    writeFileSync(join(directory, "ca.pem"), ca);
    writeFileSync(join(directory, "hosts"), lines.join(""));
    const settings = [
      `bootstrap.servers=${host}:${port}`,
      "security.protocol=SASL_SSL",
      "sasl.mechanisms=SCRAM-SHA-512",
      "sasl.username=app_user",
      `sasl.password=${bus.password}`,
      "ssl.ca.location=/mnt/ca.pem",
    ];
    writeFileSync(join(directory, "kcat.conf"), settings.map((line) => `${line}\n`).join(""));
    const argv = ["kcat", "-F", "/mnt/kcat.conf", "-C", "-t", "orders", "-o", "beginning", "-e", "-q"];
    // The client of the image resolves names by a file of hosts over the image's own.
    const script =
      'mount --bind "$1/hosts" "$2/etc/hosts" && mount --bind "$1" "$2/mnt" && shift 2 && exec chroot "$@"';
    const root = image?.root ?? "";
    const inside = [`--userspec=${testUid}:${testUid}`, root, ...argv];
    const mounted = ["--mount", "sh", "-c", script, "sh", directory, root, ...inside];
    const { stdout } = await execute("unshare", mounted, { cwd: "/" });
    expect(stdout.trim().split("\n").toSorted()).toEqual(["one", "three", "two"]);
    rmSync(directory, { recursive: true });
  });

  it("has users with the rights of their roles, and passwords that can be revealed and reset", async () => {
    for (const [username, role] of Object.entries({ reader: "readonly", writer: "readwrite" }))
      expectStatus(await platform.rest.post(path("/database-users"), { username, role }), 201);
    const writer = { username: "writer", password: await reveal("writer") };
    const reader = { username: "reader", password: await reveal("reader") };
    await send(["four"], writer);
    expect(await receive(4, "reader-group", reader)).toContain("four");
    await expect(send(["five"], reader)).rejects.toThrow(/not authorized/i);
    const topics = [{ topic: "other" }];
    await expect(asAdmin((admin) => admin.createTopics({ topics }), writer)).rejects.toThrow();
    expectStatus(await platform.rest.post(path("/database-users/writer/reset-password")), 200);
    await expect(send(["five"], writer)).rejects.toThrow(/invalid credentials/);
    await send(["five"], { username: "writer", password: await reveal("writer") });
    expectStatus(await platform.rest.delete(path("/database-users/reader")), 204);
    await expect(receive(1, "late", reader)).rejects.toThrow(/invalid credentials/);
    const { json } = await platform.rest.get<PageJson<"users", { username: string }>>(path("/database-users"));
    expect(json.users.map(({ username }) => username)).toEqual(["app_user", "writer"]);
  });

  it("applies a parameter at once, and refuses others that it does not have", async () => {
    const parameters = { "log.retention.ms": 3_600_000, "message.max.bytes": "2MB" };
    expectStatus(await platform.rest.patch(path("/configuration"), { parameters }), 200);
    const unknown = { parameters: { "super.users": "User:app_user" } };
    expectStatus(await platform.rest.patch(path("/configuration"), unknown), 400);
  });

  it("refuses what it does not have yet, with the engine's name", async () => {
    const backup = await platform.rest.post<ProblemJson>(path("/backups"), { backup_type: "manual" });
    expect(expectStatus(backup, 422).json.code).toBe("not_supported");
    const node = await platform.rest.post<ProblemJson>(path("/nodes"), {});
    expect(expectStatus(node, 422).text).toContain("kafka");
  });

  it("retains its records over a stop, a start and a killed broker", async () => {
    const count = async () => {
      const ends = await asAdmin((admin) => admin.fetchTopicOffsets("orders"));
      return ends.reduce((sum, { high }) => sum + Number(high), 0);
    };
    await services.verb(bus.service.id, "stop");
    await services.verb(bus.service.id, "start");
    expect(await count()).toBe(5);
    const engine = platform.processes().machines.find(({ id }) => id === bus.service.nodes[0]?.id)?.engine;
    expect(engine).toBeGreaterThan(1);
    killAtOnce(engine ?? 0);
    await waitUntil("the broker is back with its records", async () => (await count().catch(() => 0)) === 5);
  });

  it("is measured", async () => {
    const names = ["connections", "kafka_messages_in_per_sec", "kafka_bytes_out_per_sec", "kafka_consumer_lag"];
    const query = names.map((name) => `metric=${name}`).join("&");
    await waitUntil("samples of all metrics", async () => {
      const answer = await platform.rest.get<MetricsJson>(path(`/metrics?${query}&period=15m`));
      const { series } = expectStatus(answer, 200).json;
      const measured = series.filter(({ points }) => points.length > 0).map(({ metric }) => metric);
      return names.every((name) => measured.includes(name));
    });
  });

  it("is deleted", async () => {
    await services.delete(bus.service.id);
  });
});
