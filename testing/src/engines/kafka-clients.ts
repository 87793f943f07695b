import { pbkdf2Sync } from "node:crypto";
import { connect as connectTcp } from "node:net";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { fetch } from "@holdfast/agent/engines/kafka/protocol/apis.ts";
import { type Connection, createConnection } from "@holdfast/agent/engines/kafka/protocol/connection.ts";
import { Reader } from "@holdfast/agent/engines/kafka/protocol/codec.ts";
import { acceptsUser } from "@holdfast/agent/engines/kafka/protocol/scram-client.ts";
import { kafkaVerifier as verifierOf } from "@holdfast/controller/services/engine/kafka.ts";
import { Kafka, type KafkaConfig, logLevel } from "kafkajs";
import { addressOf } from "../api/clients.ts";
import type { Platform } from "../platform/platform.ts";
import type { RunningService } from "../platform/services.ts";
import { waitUntil } from "../wait-until.ts";
import type { ConformanceClient, ConnectOptions } from "./conformance-subject.ts";
import type { EngineEndpoint } from "./engine-clients.ts";

const salt = Buffer.from("a fixed salt of 24 bytes");

/** Kafka's verifier with a fixed salt, so that a password always has the same one. */
export function kafkaVerifier(password: string): string {
  return verifierOf(password, salt);
}

type Options = ConnectOptions & { readonly plain?: boolean };

/** A client of kafkajs that connects to the machine for every broker. */
function kafkaOf(machine: EngineEndpoint, options: Options, more: Partial<KafkaConfig> = {}) {
  const { address, port } = machine.instance.spec;
  const sockets: TLSSocket[] = [];
  const kafka = new Kafka({
    clientId: "test",
    brokers: [`${machine.serverName}:${port}`],
    logLevel: logLevel.NOTHING,
    ssl: options.plain !== true,
    sasl: { mechanism: "scram-sha-512", username: options.user, password: options.password },
    connectionTimeout: 10_000,
    retry: { retries: 0 },
    socketFactory: ({ onConnect }) => {
      const tcp = connectTcp({ host: address, port, localAddress: options.from ?? address });
      if (options.plain === true) return tcp.once("connect", onConnect);
      tcp.on("error", () => undefined);
      const servername = options.serverName ?? machine.serverName;
      const names = /^[\d.]+$/.test(servername) ? { host: servername } : { host: servername, servername };
      const socket = connectTls({ socket: tcp, ca: machine.ca, ...names }, onConnect);
      sockets.push(socket);
      return socket;
    },
    ...more,
  });
  return { kafka, sockets };
}

/** A user of a service, and the listener that its client connects to: that with TLS unless `plain`. */
interface ServiceLogin {
  readonly username?: string;
  readonly password?: string;
  readonly plain?: boolean;
}

/** A client of a service whose connections resolve the names that brokers advertise by the platform's DNS. */
export function serviceKafka(
  platform: Platform,
  { connection, password: ownPassword }: Pick<RunningService, "connection" | "password">,
  { username = "app_user", password = ownPassword, plain = false }: ServiceLogin = {},
): Kafka {
  const { host, port, ca_certificate: ca, private_bootstrap_servers: privateServers } = connection;
  return new Kafka({
    clientId: "test",
    brokers: plain ? (privateServers ?? "").split(",") : [`${host}:${port}`],
    logLevel: logLevel.NOTHING,
    ssl: !plain,
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
      if (plain) return tcp.once("connect", onConnect);
      const socket = connectTls({ socket: tcp, ca, servername: name }, onConnect);
      tcp.on("error", (error) => socket.destroy(error));
      return socket;
    },
  });
}

/** Authenticates and disconnects. */
export async function connectKafka(machine: EngineEndpoint, options: Options): Promise<void> {
  const admin = kafkaOf(machine, options).kafka.admin();
  try {
    await admin.connect();
  } finally {
    await admin.disconnect();
  }
}

const topic = "kv";

/** Values are the last records of their keys. Writes are those of kafkajs; reads need no consumer group. */
export async function kafkaClient(machine: EngineEndpoint, options: ConnectOptions): Promise<ConformanceClient> {
  const { kafka, sockets } = kafkaOf(machine, options);
  const admin = kafka.admin();
  await admin.connect();
  const closed = new Promise<void>((resolve) => {
    for (const socket of sockets) socket.once("close", () => resolve());
  });
  let isOpen = true;
  return {
    async write(key, value) {
      const producer = kafka.producer({ allowAutoTopicCreation: false });
      // Only app_user creates the topic.
      if (options.user === "app_user" && !(await admin.listTopics()).includes(topic))
        await admin.createTopics({ topics: [{ topic }], waitForLeaders: true });
      await producer.connect();
      try {
        await producer.send({ topic, acks: -1, messages: [{ key, value }] });
      } finally {
        await producer.disconnect();
      }
    },
    read: (key) => lastValue(machine, options, key),
    /** A dropped user's open connection has no rights any more. */
    get ended() {
      const refused = waitUntil(
        "a call is refused",
        async () => !isOpen || (await isRefused(() => admin.fetchTopicOffsets(topic))),
      );
      return Promise.race([closed, refused.then(() => undefined)]);
    },
    async close() {
      isOpen = false;
      await admin.disconnect();
    },
  };
}

async function isRefused(work: () => Promise<unknown>): Promise<boolean> {
  try {
    await work();
    return false;
  } catch {
    return true;
  }
}

/** A user's session in the platform's own codec, over which a test may send any call. */
export async function withUserSession<T>(
  machine: EngineEndpoint,
  options: ConnectOptions,
  work: (session: Connection) => Promise<T>,
): Promise<T> {
  const { address, port } = machine.instance.spec;
  const { from = address, user, password, serverName = machine.serverName } = options;
  const tcp = connectTcp({ host: address, port, localAddress: from });
  const socket = connectTls({ socket: tcp, ca: machine.ca, servername: serverName });
  try {
    const session = createConnection(socket);
    const saltedPassword = pbkdf2Sync(password, salt, 8_192, 32, "sha256");
    const secret = { mechanism: "SCRAM-SHA-256", iterations: 8_192, salt, saltedPassword } as const;
    if (!(await acceptsUser(session, user, secret))) throw new Error("the password is wrong");
    return await work(session);
  } finally {
    socket.destroy();
  }
}

/** The last value of a key in partition 0. */
function lastValue(machine: EngineEndpoint, options: ConnectOptions, key: string): Promise<string | undefined> {
  return withUserSession(machine, options, async (session) => {
    let value: string | undefined;
    for (let offset = 0; ; ) {
      const records = await fetchRecords(session, offset);
      if (records.length === 0) return value;
      for (const record of records) if (record.key === key) value = record.value;
      offset = (records.at(-1)?.offset ?? 0) + 1;
    }
  });
}

async function fetchRecords(session: Connection, fetchOffset: number): Promise<StoredRecord[]> {
  const position = { leaderEpoch: -1, lastFetchedEpoch: -1, startOffset: -1, maxBytes: 1 << 20 };
  const answer = await session.call(fetch, {
    replicaId: -1,
    maxWaitMs: 0,
    minBytes: 0,
    maxBytes: 1 << 20,
    isolationLevel: 0,
    sessionId: 0,
    sessionEpoch: -1,
    topics: [{ name: topic, partitions: [{ index: 0, fetchOffset, ...position }] }],
    forgotten: [],
    rackId: "",
  });
  const found = answer.topics[0]?.partitions[0];
  if (found?.errorCode !== 0) throw new Error(`the records could not be read: error ${found?.errorCode}`);
  return recordsOf(found.records ?? Buffer.alloc(0)).filter(({ offset }) => offset >= fetchOffset);
}

interface StoredRecord {
  readonly offset: number;
  readonly key: string;
  readonly value: string;
}

/** Records of uncompressed batches (magic 2). */
function recordsOf(batches: Buffer): StoredRecord[] {
  const records: StoredRecord[] = [];
  for (let at = 0; at + 61 <= batches.length; ) {
    const end = at + 12 + batches.readInt32BE(at + 8);
    const base = Number(batches.readBigInt64BE(at));
    if (end > batches.length) break;
    const reader = new Reader(batches.subarray(at + 61, end));
    const varint = () => {
      const value = reader.varint();
      return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
    };
    const text = () => reader.take(Math.max(varint(), 0)).toString("utf8");
    for (let count = batches.readInt32BE(at + 57); count > 0; count -= 1) {
      varint();
      reader.take(1);
      varint();
      const offset = base + varint();
      records.push({ offset, key: text(), value: text() });
      for (let headers = varint(); headers > 0; headers -= 1) {
        text();
        text();
      }
    }
    at = end;
  }
  return records;
}
