import { newLogSecrets, sealLog, type LogSettings } from "@holdfast/common/backup/log-object.ts";
import { logObject } from "@holdfast/common/backup/object-names.ts";
import { describe, expect, test } from "vitest";
import { createArchiveReader } from "./archive-reader.ts";
import { partial } from "@holdfast/testing/partial.ts";
import type { JobTarget } from "./job.ts";
import { settingsWith } from "./log-settings.ts";

const service = "s-1";
const key = { id: "k-1", secret: Buffer.alloc(32, 1) };
const objectCount = 40;
const baseMs = Date.UTC(2026, 0, 1);
const minuteOf = (index: number) => new Date(baseMs + index * 60_000);

/** An archive of two terms whose engine runs with another value of max_connections from each listed object on. */
function archiveWith(values: Readonly<Record<number, number>>) {
  const objects = new Map<string, Buffer>();
  const split = objectCount / 2;
  let settings: readonly LogSettings[] = [];
  for (let index = 0; index < objectCount; index += 1) {
    const value = values[index];
    if (value !== undefined) settings = settingsWith(settings, String(index), { max_connections: value });
    const [term, sequence] = index < split ? [1, index + 1] : [2, index - split + 1];
    const range = { branch: String(term), from: String(index), to: String(index + 1) };
    const header = { service, term, sequence, ...range, time: minuteOf(index).toISOString(), settings };
    objects.set(logObject({ service, term }, sequence), sealLog(Buffer.from("log"), header, key, newLogSecrets()));
  }
  const reads: string[] = [];
  const distance = (from: string, to: string) => Number(to) - Number(from);
  return {
    reads,
    read(base: string | undefined, target: JobTarget = { kind: "log_end" }) {
      const keys = [{ id: key.id, secret: key.secret.toString("base64") }];
      const logs = [1, 2].map((term) => ({ term, firstSequence: 1, lastSequence: split, keys }));
      const deps = partial<Parameters<typeof createArchiveReader>[2]>({
        facet: { log: { distance } },
        store: {
          async get(name: string) {
            reads.push(name);
            const bytes = objects.get(name);
            return (
              bytes &&
              (async function* () {
                yield bytes;
              })()
            );
          },
        },
        urls: { prefetch: () => undefined },
        signal: new AbortController().signal,
      });
      const location = { service, backup: "b-1", attempt: 1 };
      return createArchiveReader({ location, logs, target }, base, deps, () => undefined)?.settings();
    },
  };
}

const max = (value: number) => ({ max_connections: value });
const at = (index: number): JobTarget => ({ kind: "time", timeMs: minuteOf(index).getTime() });

describe("the settings that a restore replays under", () => {
  test("begin at the base's position, not at the archive's first object", async () => {
    const archive = archiveWith({ 0: 100, 3: 8_000, 10: 100 });
    expect(await archive.read("0")).toEqual(max(8_000));
    expect(await archive.read("9")).toEqual(max(8_000));
    expect(await archive.read("10")).toEqual(max(100));
    expect(await archive.read("30")).toEqual(max(100));
  });

  test("end with the object that has the target", async () => {
    const archive = archiveWith({ 0: 100, 12: 300, 25: 8_000 });
    expect(await archive.read("5", at(8))).toEqual(max(100));
    expect(await archive.read("5", at(15))).toEqual(max(300));
    expect(await archive.read("5", at(24))).toEqual(max(8_000));
    expect(await archive.read("5", at(23))).toEqual(max(300));
    expect(await archive.read("5", { kind: "log_end" })).toEqual(max(8_000));
  });

  test("are those of all log for a base without a position", async () => {
    expect(await archiveWith({ 0: 8_000, 3: 100 }).read(undefined)).toEqual(max(8_000));
  });

  test("are found with few reads", async () => {
    const archive = archiveWith({ 0: 100, 12: 300 });
    await archive.read("5", at(15));
    expect(new Set(archive.reads).size).toBeLessThan(10);
  });
});
