import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { createByteReader } from "@holdfast/common/sealed/byte-reader.ts";
import { readEngineFile } from "../../../os/engine-file.ts";
import type { OpenedSource } from "../../backup-facet.ts";
import type { Instance } from "../../instance.ts";
import { engineSocket, platform, secretFile } from "../layout.ts";
import { retryWhileBusy, withSession } from "../session.ts";

/** Name of the only stream: the snapshot that a replica receives first. */
export const snapshotStream = "dump.rdb";

const markBytes = 40;
const chunkBytes = 64 << 10;
const maxLineBytes = 1_024;
/** Interval of retries while a script blocks the engine. */
const busyRetryMs = 200;

/**
 * Streams a snapshot of all contents as a replica would receive it (SYNC), straight from the engine's child process and
 * without a copy on disk.
 */
export async function openSnapshot(instance: Instance, signal: AbortSignal): Promise<OpenedSource> {
  const { version, bytes } = await retryWhileBusy(signal, () =>
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
    for (const args of [
      ["AUTH", platform, secret],
      // Announces support for a stream of unknown length, and requests only the snapshot.
      ["REPLCONF", "capa", "eof"],
      ["REPLCONF", "rdb-only", "1"],
    ]) {
      socket.write(command(args));
      const line = await lineOf(reader);
      if (line !== "+OK") throw new Error(`the engine refused a snapshot: ${line}`);
    }
    let reply: string;
    for (;;) {
      // Taken before the engine forks: every write acknowledged before this time is in the snapshot.
      dataTime = new Date();
      socket.write(command(["SYNC"]));
      reply = await lineOf(reader);
      if (!reply.startsWith("-BUSY ")) break;
      await sleep(busyRetryMs, undefined, { signal });
    }
    const announced = /^\$(?:EOF:(?<mark>.{40})|(?<length>\d+))$/.exec(reply)?.groups;
    if (announced === undefined) throw new Error(`the engine sent no snapshot: ${reply}`);
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
  for (let remaining = length; remaining > 0; ) {
    const bytes = await reader.take(Math.min(remaining, chunkBytes));
    remaining -= bytes.length;
    yield bytes;
  }
}

/** Bytes of the stream up to its end mark. The engine does not close the connection after the mark. */
async function* untilMark(reader: Reader, mark: Buffer): AsyncGenerator<Buffer> {
  // Reading byte by byte is slow, and a wait for a complete chunk may never end, so compare the tail of each chunk.
  let tail = await reader.take(markBytes);
  while (!tail.subarray(-markBytes).equals(mark)) {
    const more = await reader.takeAvailable();
    const all = Buffer.concat([tail, more]);
    yield all.subarray(0, -markBytes);
    tail = all.subarray(-markBytes);
  }
}

/** A line without its end. The engine sends empty lines while it prepares the snapshot. */
async function lineOf(reader: Reader): Promise<string> {
  let line = "";
  while (line.length < maxLineBytes) {
    const byte = (await reader.take(1)).toString("latin1");
    if (byte !== "\n") line += byte;
    else if (line.replace(/\r$/, "") !== "") return line.replace(/\r$/, "");
  }
  throw new Error("the engine's reply is not a line");
}

function command(args: readonly string[]): string {
  return `*${args.length}\r\n${args.map((arg) => `$${Buffer.byteLength(arg)}\r\n${arg}\r\n`).join("")}`;
}

function field(info: string, name: string): string {
  return new RegExp(`^${name}:(.*?)\r?$`, "m").exec(info)?.[1] ?? "";
}
