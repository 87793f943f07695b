import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { systemClock } from "@holdfast/common/clock.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { ZoneBatchSchema } from "@holdfast/proto/holdfast/dns/v1/zone_pb.ts";
import { decode, encode } from "dns-packet";
import { afterAll, beforeAll, expect, test } from "vitest";
import { freePorts } from "@holdfast/testing/platform/free-ports.ts";
import { type DnsServer, startDnsServer } from "./dns-server.ts";

const run = promisify(execFile);
const origin = "local.holdfast.test";
let directory: string;
let server: DnsServer;
const dig = await run("dig", ["-v"]).then(
  () => true,
  () => false,
);

async function start(): Promise<DnsServer> {
  // A port that the kernel selects for UDP may be in use for TCP.
  const [port = 0] = await freePorts(1);
  return startDnsServer({
    host: "127.0.0.1",
    port,
    directory,
    nameServerAddresses: ["127.0.0.1"],
    queriesPerSecond: 5_000,
    monotonicMs: systemClock.monotonicMs,
    log: silentLog,
  });
}

function batch(init: MessageInitShape<typeof ZoneBatchSchema>) {
  return create(ZoneBatchSchema, { origin, synced: true, ...init });
}

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "holdfast-dns-"));
  server = await start();
  const addresses = Array.from({ length: 120 }, (_, n) => `10.1.${n}.1`);
  const records = [
    { name: `shop-1.${origin}`, addresses: ["127.77.0.5"], ttlS: 1 },
    { name: `many.${origin}`, addresses, ttlS: 1 },
  ];
  server.apply(batch({ revision: 7n, reset: true, records }));
});
afterAll(async () => {
  await server?.close();
  await rm(directory, { recursive: true, force: true });
});

/** Output of dig for a query to the server. */
async function sendQuery(...query: string[]): Promise<string> {
  const { stdout } = await run("dig", ["@127.0.0.1", "-p", String(server.port), "+tries=1", "+time=30", ...query]);
  return stdout;
}

test.skipIf(!dig)("dig finds a name over UDP and TCP, with EDNS and without", async () => {
  for (const how of ["+notcp", "+tcp", "+noedns"]) {
    const text = await sendQuery(`Shop-1.${origin}`, "A", how);
    expect(text).toContain("status: NOERROR");
    expect(text).toMatch(/flags: qr aa rd;/);
    expect(text).toMatch(new RegExp(`Shop-1\\.${origin}\\.\\s+1\\s+IN\\s+A\\s+127\\.77\\.0\\.5`));
    expect(text).not.toMatch(/malformed|Warning: Message parser/i);
  }
});

test.skipIf(!dig)("dig distinguishes NXDOMAIN, NODATA and REFUSED, and retries truncation over TCP", async () => {
  expect(await sendQuery(`gone.${origin}`, "A")).toMatch(/status: NXDOMAIN[\s\S]*AUTHORITY SECTION[\s\S]*SOA/);
  expect(await sendQuery(`shop-1.${origin}`, "MX")).toMatch(/status: NOERROR[\s\S]*ANSWER: 0, AUTHORITY: 1/);
  expect(await sendQuery("example.com", "A")).toContain("status: REFUSED");
  expect(await sendQuery(`many.${origin}`, "A", "+ignore")).toMatch(/flags: qr aa tc rd/);
  const complete = await sendQuery(`many.${origin}`, "A");
  expect(complete).toMatch(/ANSWER: 120/);
  expect(complete).toContain("(TCP)");
  expect(await sendQuery(`shop-1.${origin}`, "ANY", "+notcp")).toContain("RFC8482");
  expect(await sendQuery(`shop-1.${origin}`, "A", "+edns=1", "+noednsnegotiation")).toContain("BADVERS");
  expect(await sendQuery(origin, "NS")).toMatch(/ns1\.local\.holdfast\.test/);
});

test("several queries on one TCP connection are served in order, in any segmentation", async () => {
  const queries = [1, 2, 3, 4].map((id) => {
    const query = encode({ type: "query", id, questions: [{ name: `shop-1.${origin}`, type: "A" }] });
    const length = Buffer.alloc(2);
    length.writeUInt16BE(query.byteLength);
    return Buffer.concat([length, query]);
  });
  const bytes = Buffer.concat(queries);
  const size = queries[0]?.byteLength ?? 0;
  const socket = connect(server.port, "127.0.0.1");
  const answers = answersOn(socket);
  // Each part but the last ends within a query, and the next follows the answer to the query before that.
  const ends = [size + 1, 2 * size + 2, 4 * size - 1, 4 * size];
  for (const [index, end] of ends.entries()) {
    socket.write(bytes.subarray(ends[index - 1] ?? 0, end));
    await expect.poll(() => answers).toHaveLength(index + 1);
  }
  expect(answers).toEqual([1, 2, 3, 4]);
  socket.destroy();
});

/** Ids of the answers so far; the list grows. */
function answersOn(socket: Socket): readonly number[] {
  let waiting = Buffer.alloc(0);
  const ids: number[] = [];
  socket.on("data", (bytes: Buffer) => {
    waiting = Buffer.concat([waiting, bytes]);
    while (waiting.byteLength >= 2 && waiting.byteLength >= 2 + waiting.readUInt16BE(0)) {
      const length = waiting.readUInt16BE(0);
      ids.push(decode(waiting.subarray(2, 2 + length)).id ?? -1);
      waiting = waiting.subarray(2 + length);
    }
  });
  return ids;
}

test("a restart serves from disk before a controller connects, and ignores a damaged file", async () => {
  const file = join(directory, "zone.json");
  await expect.poll(() => readFile(file, "utf8").catch(() => "")).toContain(`shop-1.${origin}`);
  const again = await start();
  expect(again.zone.revision).toBe(7n);
  expect(again.zone.find(`shop-1.${origin}`).kind).toBe("records");
  await again.close();
  const text = await readFile(file, "utf8");
  await writeFile(file, text.replace("127.77.0.5", "127.77.0.6"));
  const third = await start();
  expect(third.zone.origin).toBe("");
  third.apply(
    batch({
      revision: 8n,
      reset: true,
      records: [{ name: `shop-1.${origin}`, addresses: ["127.77.0.5"], ttlS: 1 }],
    }),
  );
  await third.close();
  expect(await readFile(file, "utf8")).toContain("127.77.0.5");
});
