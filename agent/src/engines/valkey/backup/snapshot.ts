import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { createByteReader } from "@holdfast/common/sealed/byte-reader.ts";
import { readEngineFile } from "../../../os/engine-file.ts";
import type { OpenedSource } from "../../backup-facet.ts";
import type { Instance } from "../../instance.ts";
import { engineSocket, platform, secretFile } from "../layout.ts";
import { untilFree, withSession } from "../session.ts";

/** Name of the one stream: what a replica is sent first. */
export const snapshotStream = "dump.rdb";

const markBytes = 40;
const chunkBytes = 64 << 10;
const longestLineBytes = 1_024;
/** A script keeps the engine from it. */
const busyRetryMs = 200;

/** The whole contents at one moment, as a replica gets them: straight from the engine's child, with no copy on its disk. */
export async function openSnapshot(instance: Instance, signal: AbortSignal): Promise<OpenedSource> {
  const { version, bytes } = await untilFree(signal, () =>
    withSession(instance, signal, async (session) => {
      const info = String(await session.call("INFO", "server", "memory"));
      return { version: field(info, "valkey_version"), bytes: Number(field(info, "used_memory_dataset") || 0) };
    }),
  );
  const socket = connect(engineSocket(instance));
  socket.on("error", () => socket.destroy());
  const abort = () => socket.destroy(new Error("aborted"));
  signal.addEventListener("abort", abort, { once: true });
  let dataTime: Date | undefined;

  async function* dump(): AsyncGenerator<Buffer> {
    const secret = await readEngineFile(secretFile(instance));
    const reader = createByteReader(socket as AsyncIterable<Buffer>);
    for (const words of [
      ["AUTH", platform, secret],
      // It can tell the end of a stream whose length nobody knows before; and it wants no more than that.
      ["REPLCONF", "capa", "eof"],
      ["REPLCONF", "rdb-only", "1"],
    ]) {
      socket.write(command(words));
      const line = await lineOf(reader);
      if (line !== "+OK") throw new Error(`the engine refused a snapshot: ${line}`);
    }
    let head: string;
    for (;;) {
      // Before the engine forks: whatever it acknowledged until now is in the snapshot.
      dataTime = new Date();
      socket.write(command(["SYNC"]));
      head = await lineOf(reader);
      if (!head.startsWith("-BUSY ")) break;
      await sleep(busyRetryMs, undefined, { signal });
    }
    const announced = /^\$(?:EOF:(?<mark>.{40})|(?<length>\d+))$/.exec(head)?.groups;
    if (announced === undefined) throw new Error(`the engine sent no snapshot: ${head}`);
    if (announced["length"] !== undefined) yield* exactly(reader, Number(announced["length"]));
    else yield* untilMark(reader, Buffer.from(announced["mark"] ?? "", "latin1"));
  }

  return {
    streams: [{ name: snapshotStream, bytes: dump() }],
    totalBytes: bytes,
    async end() {
      if (dataTime === undefined) throw new Error("no snapshot was read");
      return { version, dataTime, positions: null };
    },
    async close() {
      signal.removeEventListener("abort", abort);
      socket.destroy();
    },
  };
}

type Reader = ReturnType<typeof createByteReader>;

async function* exactly(reader: Reader, length: number): AsyncGenerator<Buffer> {
  for (let left = length; left > 0; ) {
    const bytes = await reader.take(Math.min(left, chunkBytes));
    left -= bytes.length;
    yield bytes;
  }
}

/** All before the mark, which comes last. The engine holds the connection open behind it. */
async function* untilMark(reader: Reader, mark: Buffer): AsyncGenerator<Buffer> {
  // One byte at a time would be slow, and to wait for a whole chunk might be for ever: the tail is looked at as it comes.
  let tail = await reader.take(markBytes);
  while (!tail.subarray(-markBytes).equals(mark)) {
    const more = await reader.some();
    const all = Buffer.concat([tail, more]);
    yield all.subarray(0, -markBytes);
    tail = all.subarray(-markBytes);
  }
}

/** A line without its end. The engine sends empty ones while it gets ready. */
async function lineOf(reader: Reader): Promise<string> {
  let line = "";
  while (line.length < longestLineBytes) {
    const byte = (await reader.take(1)).toString("latin1");
    if (byte !== "\n") line += byte;
    else if (line.replace(/\r$/, "") !== "") return line.replace(/\r$/, "");
  }
  throw new Error("the engine's answer is no line");
}

function command(words: readonly string[]): string {
  return `*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join("")}`;
}

function field(info: string, name: string): string {
  return new RegExp(`^${name}:(.*?)\r?$`, "m").exec(info)?.[1] ?? "";
}
