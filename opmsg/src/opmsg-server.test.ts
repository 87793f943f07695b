import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { silentLog } from "@holdfast/common/log.ts";
import { inheritedNames } from "@holdfast/testing/hostile/inherited-names.ts";
import { opMsg, opQuery, saslStart } from "@holdfast/testing/servers/opmsg-message.ts";
import { deserialize, serialize } from "bson";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Access } from "./commands.ts";
import { type OpMsgServer, type OpMsgStatus, startOpMsgServer } from "./opmsg-server.ts";
import { headerBytes, messageBytesMax, opCodes, readHeader, writeMessage } from "./protocol/message.ts";
import { readRequest } from "./protocol/request.ts";
import { createByteSource } from "./session/byte-source.ts";

/** The processes of the engine answer each command with their name; `silent` is answered never. */
let directory: string;
let accesses: Map<string, Access>;
/** The engine does not respond. */
let isDown: boolean;
/** Start of the engine's process; undefined if there is none. */
let started: string | undefined;
/** The engine follows a primary. */
let isReplica: boolean;
let server: OpMsgServer;
let engines: Server[];
let received: string[];
let engineConnections: Set<Socket>;

async function startEngine(name: Access): Promise<string> {
  const path = join(directory, name);
  const connections = engineConnections;
  const engine = createServer((socket) => {
    connections.add(socket);
    socket.on("close", () => connections.delete(socket));
    socket.on("error", () => socket.destroy());
    const source = createByteSource(socket);
    const serve = async () => {
      for (;;) {
        const header = await source.take(headerBytes);
        const rest = header && (await source.take(readHeader(header).length - headerBytes));
        if (header === undefined || rest === undefined) return;
        const { command, fields } = readRequest(Buffer.concat([header, rest]));
        received.push(`${name}: ${command}`);
        if (fields.some((field) => field.name === "silent")) continue;
        const document = serialize({
          ok: 1,
          by: name,
          command,
          maxWriteBatchSize: 100_000,
          isWritablePrimary: true,
          padding: "x".repeat(command === "find" ? 3_000_000 : 0),
        });
        const to = { requestId: 9, responseTo: readHeader(header).requestId, opCode: opCodes.msg };
        socket.write(writeMessage(to, Buffer.concat([Buffer.alloc(5), document])));
      }
    };
    void serve();
  });
  engine.listen(path);
  await once(engine, "listening");
  engines.push(engine);
  return path;
}

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "opmsg-"));
  [engines, received, engineConnections, isDown, started] = [[], [], new Set(), false, "first"];
  isReplica = false;
  accesses = new Map<string, Access>([
    ["writer", "readwrite"],
    ["reader", "readonly"],
  ]);
  server = await startOpMsgServer({
    socket: join(directory, "clients"),
    statusSocket: join(directory, "status"),
    engineSockets: { readwrite: await startEngine("readwrite"), readonly: await startEngine("readonly") },
    accesses: {
      index: async () => undefined,
      of: async (users) => {
        if (isDown) throw new Error("the engine is down");
        if (started === undefined) return undefined;
        return { started, isReplica, users: new Map([...accesses].filter(([user]) => users.includes(user))) };
      },
    },
    connectionsMax: 3,
    requestMemoryBytes: 0,
    replyMemoryBytes: 0,
    replyWaitMs: 100,
    log: silentLog,
  });
});
afterEach(async () => {
  await server.close();
  for (const engine of engines) engine.close();
  rmSync(directory, { recursive: true });
});

async function client() {
  const socket = connect({ path: join(directory, "clients") });
  await once(socket, "connect");
  socket.on("error", () => socket.destroy());
  const source = createByteSource(socket);
  const next = async () => {
    const header = await source.take(headerBytes);
    const body = header && (await source.take(readHeader(header).length - headerBytes));
    if (header === undefined || body === undefined) return undefined;
    const { opCode } = readHeader(header);
    return deserialize(body.subarray(opCode === opCodes.reply ? 20 : 5));
  };
  const send = (...messages: Buffer[]) => {
    for (const message of messages) socket.write(message);
    return next();
  };
  return { socket, next, send };
}

const greeting = (user: string) =>
  opQuery({ isMaster: 1, speculativeAuthenticate: { ...saslStart(user), db: "admin" } });

test("the user of the sign-in chooses the process, by saslStart or in a greeting", async () => {
  const writer = await client();
  expect(await writer.send(opMsg({ hello: 1 }))).toMatchObject({ by: "readonly" });
  expect(await writer.send(opMsg(saslStart("writer")))).toMatchObject({ by: "readwrite" });
  expect(await writer.send(opMsg({ insert: "c", $db: "d" }))).toMatchObject({ by: "readwrite", command: "insert" });
  const reader = await client();
  expect(await reader.send(greeting("reader"))).toMatchObject({ by: "readonly" });
  expect(await reader.send(opMsg({ find: "c", $db: "d" }))).toMatchObject({ by: "readonly", command: "find" });
  expect(await reader.send(opMsg({ insert: "c", $db: "d" }))).toMatchObject({ ok: 0, code: 13 });
  const other = await client();
  await other.send(greeting("writer"));
  expect(await other.send(opMsg({ find: "c", $db: "d" }))).toMatchObject({ by: "readwrite" });
  expect(received).not.toContain("readonly: insert");
});

test("greetings have the number of writes that the engine takes in one command", async () => {
  const { send } = await client();
  expect(await send(opMsg({ hello: 1 }))).toMatchObject({ by: "readonly", maxWriteBatchSize: 25_000, ok: 1 });
  expect(await send(greeting("writer"))).toMatchObject({ by: "readwrite", maxWriteBatchSize: 25_000 });
  expect(await send(opMsg({ find: "c", $db: "d" }))).toMatchObject({ maxWriteBatchSize: 100_000 });
});

test("a sign-in as another user leaves the process of the first one", async () => {
  const { send } = await client();
  await send(opMsg(saslStart("writer")));
  expect(await send(opMsg(saslStart("reader")))).toMatchObject({ by: "readonly" });
  expect(await send(opMsg({ delete: "c", $db: "d" }))).toMatchObject({ code: 13 });
  await expect.poll(() => engineConnections.size).toBe(1);
});

test("a sign-in as another user of the same access, even an incomplete one, leaves what the first one signed in to", async () => {
  accesses.set("other_writer", "readwrite");
  const { send } = await client();
  await send(opMsg(saslStart("writer")));
  await send(opMsg(saslStart("writer")));
  const [first] = engineConnections;
  expect(engineConnections.size).toBe(1);
  expect(await send(opMsg(saslStart("other_writer")))).toMatchObject({ by: "readwrite" });
  await expect.poll(() => first !== undefined && engineConnections.has(first)).toBe(false);
  expect(engineConnections.size).toBe(1);
});

test("an unknown user, and a client without a sign-in, reach no process with a command", async () => {
  const { send } = await client();
  expect(await send(opMsg({ find: "c", $db: "d" }))).toMatchObject({ code: 13, codeName: "Unauthorized" });
  expect(await send(opMsg(saslStart("nobody")))).toMatchObject({ code: 18 });
  expect(await send(greeting("nobody"))).toMatchObject({ ok: 0, code: 18 });
  expect(await send(opMsg({ find: "c", $db: "d" }))).toMatchObject({ code: 13 });
  isDown = true;
  expect(await send(opMsg(saslStart("writer")))).toMatchObject({ code: 6 });
  expect(received).toEqual([]);
});

test.each(inheritedNames)("the name %s is no command, user, mechanism or document sequence", async (name) => {
  const { send } = await client();
  expect(await send(opMsg(saslStart(name)))).toMatchObject({ code: 18 });
  expect(await send(greeting(name))).toMatchObject({ code: 18 });
  expect(await send(opMsg({ ...saslStart("writer"), mechanism: name }))).toMatchObject({ code: 18 });
  expect(await send(opMsg({ [name]: 1 }))).toMatchObject({ code: 13 });
  await send(opMsg(saslStart("writer")));
  expect(await send(opMsg({ [name]: 1 }))).toMatchObject({ code: 59 });
  expect(await send(opMsg({ aggregate: "c", pipeline: [{ [name]: 1 }] }))).toMatchObject({ command: "aggregate" });
  const sequences = [{ identifier: name, documents: [{}] }];
  expect(await send(opMsg({ insert: "c" }, { sequences }))).toBeUndefined();
  expect(received).toEqual(["readwrite: saslStart", "readwrite: aggregate"]);
});

test("commands that are sent together are answered in order, and an unacknowledged one not at all", async () => {
  const { send, next } = await client();
  await send(opMsg(saslStart("writer")));
  const first = await send(
    opMsg({ find: "c", $db: "d" }, { requestId: 2 }),
    opMsg({ insert: "c", $db: "d" }, { requestId: 3, flags: 2 }),
    opMsg({ createUser: "u" }, { requestId: 4, flags: 2 }),
    opMsg({ count: "c", $db: "d" }, { requestId: 5 }),
  );
  expect(first).toMatchObject({ command: "find", padding: expect.stringMatching(/^x{3000000}$/) });
  expect(await next()).toMatchObject({ command: "count" });
  expect(received.slice(1)).toEqual(["readwrite: find", "readwrite: insert", "readwrite: count"]);
});

test("a client that leaves ends its command in the engine", async () => {
  const { socket, send } = await client();
  await send(opMsg(saslStart("writer")));
  socket.write(opMsg({ count: "c", silent: true }));
  await expect.poll(() => received).toContain("readwrite: count");
  socket.destroy();
  await expect.poll(() => engineConnections.size).toBe(0);
});

test("connections end with a change of the user's access, and remain for other users and while the engine is down", async () => {
  const [writer, reader] = [await client(), await client()];
  await writer.send(opMsg(saslStart("writer")));
  await reader.send(opMsg(saslStart("reader")));
  isDown = true;
  await expect(server.endChanged()).rejects.toThrow(/down/);
  isDown = false;
  await server.endChanged();
  expect(await writer.send(opMsg({ ping: 1 }))).toMatchObject({ ok: 1 });
  accesses.set("writer", "readonly");
  await server.endChanged();
  expect(await writer.next()).toBeUndefined();
  expect(await reader.send(opMsg({ ping: 1 }))).toMatchObject({ ok: 1 });
  accesses.delete("reader");
  await server.endChanged();
  expect(await reader.next()).toBeUndefined();
});

test.each([
  ["ended", undefined],
  ["was replaced", "second"],
])("connections end after the engine's process %s", async (_, now) => {
  const [writer, anonymous] = [await client(), await client()];
  await writer.send(opMsg(saslStart("writer")));
  await anonymous.send(opMsg({ hello: 1 }));
  started = now;
  await server.endChanged();
  expect(await writer.next()).toBeUndefined();
  expect(await anonymous.send(opMsg({ hello: 1 }))).toMatchObject({ ok: 1 });
  const later = await client();
  expect(await later.send(opMsg(saslStart("writer")))).toMatchObject(now === undefined ? { code: 6 } : { ok: 1 });
  await server.endChanged();
  expect(await later.send(opMsg({ ping: 1 }))).toMatchObject({ ok: 1 });
});

test("a replica refuses writes, and its connections end when it is promoted", async () => {
  isReplica = true;
  const writer = await client();
  for (const greeting of [opMsg({ hello: 1 }), opQuery({ isMaster: 1 })])
    expect(await writer.send(greeting)).toMatchObject({ isWritablePrimary: false, secondary: true, readOnly: true });
  await writer.send(opMsg(saslStart("writer")));
  expect(await writer.send(opMsg({ insert: "c", $db: "d" }))).toMatchObject({ ok: 0, code: 10_107 });
  expect(await writer.send(opMsg({ count: "c" }))).toMatchObject({ by: "readwrite" });
  await server.endChanged();
  expect(await writer.send(opMsg({ ping: 1 }))).toMatchObject({ ok: 1 });
  isReplica = false;
  await server.endChanged();
  expect(await writer.next()).toBeUndefined();
  const later = await client();
  await later.send(opMsg(saslStart("writer")));
  expect(await later.send(opMsg({ insert: "c", $db: "d" }))).toMatchObject({ by: "readwrite" });
});

test.each([
  ["larger than a greeting before the sign-in", opMsg({ ping: 1, padding: "x".repeat(70_000) })],
  ["larger than any", oversized(messageBytesMax + 1)],
  ["of a negative size", oversized(-1)],
  ["that is malformed", writeMessage({ requestId: 1, responseTo: 0, opCode: opCodes.msg }, Buffer.alloc(9))],
])("a message %s ends the connection", async (_, message) => {
  const { send } = await client();
  expect(await send(message)).toBeUndefined();
  expect(received).toEqual([]);
});

function oversized(length: number): Buffer {
  const message = opMsg({ ping: 1 });
  message.writeInt32LE(length, 0);
  return message;
}

test("large messages share their memory one after the other, and one of the maximum size passes", async () => {
  const insertOf = (...sizes: number[]) => {
    const documents = sizes.map((size) => ({ padding: Buffer.alloc(size) }));
    return opMsg({ insert: "c", $db: "d" }, { sequences: [{ identifier: "documents", documents }] });
  };
  const inserts = [insertOf(16_000_000, 16_000_000, messageBytesMax - 32_000_200), insertOf(1_000_000)];
  const responses = inserts.map(async (insert) => {
    const { send } = await client();
    await send(opMsg(saslStart("writer")));
    return send(insert);
  });
  for (const response of await Promise.all(responses)) expect(response).toMatchObject({ ok: 1, command: "insert" });
});

test("reads of unknown size share the memory of replies, until their sizes are known", async () => {
  const [writer, other, reader] = [await client(), await client(), await client()];
  await writer.send(opMsg(saslStart("writer")));
  await other.send(opMsg(saslStart("writer")));
  await reader.send(opMsg(saslStart("reader")));
  const read = (name: string) => opMsg({ aggregate: name, pipeline: [{ $match: {} }], $db: "d" });
  expect(await other.send(read("known"))).toMatchObject({ ok: 1 });
  writer.socket.write(opMsg({ aggregate: "slow", silent: true, $db: "d" }));
  await expect.poll(() => received.filter((command) => command === "readwrite: aggregate")).toHaveLength(2);
  expect(await other.send(read("unknown"))).toMatchObject({ ok: 0, code: 262, codeName: "ExceededTimeLimit" });
  expect(await other.send(read("known"))).toMatchObject({ ok: 1 });
  expect(await other.send(opMsg({ insert: "c", $db: "d" }))).toMatchObject({ ok: 1 });
  // Users who may only read have another process, to which a reply is left.
  expect(await reader.send(read("unknown"))).toMatchObject({ by: "readonly" });
  const waiting = other.send(read("waiting"));
  writer.socket.destroy();
  expect(await waiting).toMatchObject({ ok: 1, by: "readwrite" });
});

test("connections beyond the maximum get an error, and counts are reported", async () => {
  const clients = [await client(), await client(), await client()];
  for (const { send } of clients) await send(opMsg({ ping: 1 }));
  await clients[0]?.send(opMsg(saslStart("reader")));
  for (const greeting of [opMsg({ hello: 1 }), opQuery({ isMaster: 1 })]) {
    const excess = await client();
    expect(await excess.send(greeting)).toMatchObject({
      ok: 0,
      errmsg: expect.stringContaining("maximum of 3") as string,
    });
    expect(await excess.next()).toBeUndefined();
  }
  const probe = await client();
  expect(await probe.send(opMsg({ ping: 1 }))).toEqual({ ok: 1 });
  const socket = connect({ path: join(directory, "status") });
  const [line] = (await once(socket.setEncoding("utf8"), "data")) as [string];
  const counts = JSON.parse(line) as OpMsgStatus;
  expect(counts).toMatchObject({ connections: 1, commands: 1 });
  clients[0]?.socket.destroy();
  await nextTurn();
  await expect
    .poll(async () => {
      const { send } = await client();
      return send(opMsg({ hello: 1 }));
    })
    .toMatchObject({ ok: 1 });
});
