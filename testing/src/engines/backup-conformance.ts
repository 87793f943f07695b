import { existsSync } from "node:fs";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { defaultUser } from "@holdfast/common/engine-catalog/default-names.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { EngineMachine } from "./engine-machine.ts";
import { waitUntil } from "../wait-until.ts";
import type { BackupFacet, RecoveryPlan, SourceEnd } from "@holdfast/agent/engines/backup-facet.ts";
import { allow, type ConformanceClient, type ConformanceSubject, engineUser } from "./conformance-subject.ts";

/** A backup as a facet returns it: complete streams by name. */
interface TakenBackup {
  readonly streams: ReadonlyMap<string, Buffer>;
  readonly totalBytes: number;
  readonly end: SourceEnd;
}

/** Acknowledged keys with the time of their acknowledgment in milliseconds. */
type Acknowledged = Map<string, number>;

const writers = 8;

/** Suite for the backups of every driver: back up a running engine and restore into an empty machine. */
export function conformsToBackupFacet({
  machine: createMachine,
  connect,
  skip,
  name,
  users,
}: ConformanceSubject): void {
  describe.skipIf(skip !== undefined)(`backups of ${name}${skip === undefined ? "" : `: ${skip}`}`, () => {
    let source: EngineMachine;
    let copy: EngineMachine;
    let taken: TakenBackup;
    let acknowledged: Acknowledged;

    beforeAll(async () => {
      const machineOf = (password: string) =>
        createMachine({
          users: users === undefined ? [] : [engineUser(users, defaultUser, "admin", password)],
          allowedCidrs: ["127.0.0.0/8"],
        });
      source = await machineOf("of the source");
      copy = await machineOf("of the copy");
      for (const each of [source, copy]) await each.writeConfig();
      await source.bootstrap();
      await source.start();
      await source.driver.ready(source.instance, source.signal);
      await write(source, "of the source", "before", "here");
    });
    afterAll(async () => {
      await Promise.all([source?.remove(), copy?.remove()]);
    });

    function facetOf({ driver }: EngineMachine): BackupFacet {
      if (driver.backup === undefined) throw new Error("the driver has no backups");
      return driver.backup;
    }

    async function withClient<T>(
      machine: EngineMachine,
      password: string,
      work: (client: ConformanceClient) => Promise<T>,
    ): Promise<T> {
      const client = await connect(
        machine,
        users === undefined ? { user: "", password: "" } : { user: defaultUser, password },
      );
      try {
        return await work(client);
      } finally {
        await client.close();
      }
    }
    const write = (machine: EngineMachine, password: string, key: string, value: string) =>
      withClient(machine, password, (client) => client.write(key, value));

    async function take(): Promise<TakenBackup> {
      const opened = await facetOf(source).open(source.instance, source.signal);
      try {
        const streams = await Promise.all(
          opened.streams.map(async ({ name: stream, bytes }) => [stream, await buffer(bytes)] as const),
        );
        return { streams: new Map(streams), totalBytes: opened.totalBytes, end: await opened.end() };
      } finally {
        await opened.close();
      }
    }

    /** Takes a backup while clients write as fast as the engine acknowledges. */
    async function takeUnderWrites(): Promise<{ readonly taken: TakenBackup; readonly acknowledged: Acknowledged }> {
      const acknowledged: Acknowledged = new Map();
      let isFinished = false;
      const writing = Array.from({ length: writers }, (_, writer) =>
        withClient(source, "of the source", async (client) => {
          for (let n = 0; !isFinished; n += 1) {
            await client.write(`${writer}-${n}`, "acknowledged");
            acknowledged.set(`${writer}-${n}`, Date.now());
          }
        }),
      );
      try {
        await waitUntil("writes are acknowledged", () => acknowledged.size > writers, { everyMs: 20 });
        return { taken: await take(), acknowledged };
      } finally {
        isFinished = true;
        await Promise.all(writing);
      }
    }

    const plan = (change: Partial<RecoveryPlan> = {}): RecoveryPlan => ({
      target: { kind: "backup_end" },
      isSameService: false,
      log: undefined,
      scratch: join(copy.instance.paths.data, "scratch"),
      report: () => undefined,
      ...change,
    });

    async function unpackAll(streams: TakenBackup["streams"]): Promise<void> {
      const { data } = copy.instance.paths;
      for (const entry of await readdir(data)) await rm(join(data, entry), { recursive: true });
      for (const [stream, bytes] of streams)
        await copy.asComponent(() => facetOf(copy).restore.unpack(copy.instance, stream, chunks(bytes), copy.signal));
    }

    it("are named streams with the positions that make them consistent", async () => {
      const facet = facetOf(source);
      const beganAt = Date.now();
      ({ taken, acknowledged } = await takeUnderWrites());
      expect(taken.streams.size).toBeGreaterThan(0);
      for (const [stream, bytes] of taken.streams) {
        expect(stream).toMatch(/^[a-z0-9][a-z0-9._-]{0,99}$/);
        expect(bytes.length).toBeGreaterThan(0);
      }
      expect(taken.totalBytes).toBeGreaterThanOrEqual(0);
      expect(taken.end.version).not.toBe("");
      expect(taken.end.dataTime.getTime()).toBeGreaterThanOrEqual(beganAt);
      if (facet.log === undefined) expect(taken.end.positions).toBeNull();
      else {
        const { from, consistent } = taken.end.positions ?? { from: "", consistent: "" };
        expect(facet.log.distance(from, consistent)).toBeGreaterThan(0);
      }
      await write(source, "of the source", "after", "too late");
    });

    it("end with their signal, and the engine is unaffected", async () => {
      const end = new AbortController();
      const opened = await facetOf(source).open(source.instance, end.signal);
      const reading = Promise.all(
        opened.streams.map(async ({ bytes }) => {
          for await (const _ of bytes) end.abort(new Error("aborted"));
        }),
      ).then(() => opened.end());
      // A stream that was complete before the abort may succeed; the engine retains nothing either way.
      await reading.catch(() => undefined);
      await opened.close();
      await write(source, "of the source", "given-up", "no");
      expect((await take()).streams.size).toBe(taken.streams.size);
    });

    it("start without clients after the settings admit none", async () => {
      let acknowledged = 0;
      const writing = Array.from({ length: writers }, (_, writer) =>
        withClient(source, "of the source", async (client) => {
          for (let n = 0; ; n += 1) {
            await client.write(`late-${writer}-${n}`, "acknowledged");
            acknowledged += 1;
          }
        }),
      );
      const ended = Promise.allSettled(writing);
      await waitUntil("writes are acknowledged", () => acknowledged > 0, { everyMs: 20 });
      await allow(source, []);
      await facetOf(source).untilNoClients(source.instance, source.signal);
      await ended;
      await expect(write(source, "of the source", "later", "no")).rejects.toThrow();
      await allow(source, ["127.0.0.0/8"]);
    });

    it("have a log that includes a commit even if nothing else is written", async ({ skip: none }) => {
      const { log } = facetOf(source);
      if (log === undefined) return none("it has no log");
      const end = new AbortController();
      const stream = log.follow(source.instance, undefined, end.signal);
      const sinceMs = Date.now();
      let reached = "";
      const following = (async () => {
        for await (const { to } of stream.pieces) reached = to;
      })().catch(() => undefined);
      const { time, position } = await log.commit(source.instance, source.signal);
      expect(time.getTime()).toBeGreaterThanOrEqual(sinceMs);
      await waitUntil("the stream is behind it", () => reached !== "" && log.distance(position, reached) >= 0, {
        everyMs: 5,
      });
      end.abort();
      await following;
      return undefined;
    });

    it("are unpacked by their own names only", async () => {
      const unpacking = copy.asComponent(() =>
        facetOf(copy).restore.unpack(copy.instance, "foreign", chunks(Buffer.from("x")), copy.signal),
      );
      await expect(unpacking).rejects.toThrow("foreign");
    });

    it("throw the store's error, and can be unpacked again from the beginning", async () => {
      const [[stream = "", bytes = Buffer.alloc(0)] = []] = taken.streams;
      async function* cut(): AsyncGenerator<Buffer> {
        yield bytes.subarray(0, Math.floor(bytes.length / 2));
        throw new Error("the store failed");
      }
      const unpacking = copy.asComponent(() => facetOf(copy).restore.unpack(copy.instance, stream, cut(), copy.signal));
      await expect(unpacking).rejects.toThrow("the store failed");
      await unpackAll(taken.streams);
    });

    it("refuse a target without log, and leave no engine running", async () => {
      const target = { kind: "time", time: new Date(Date.now() + 3_600_000) } as const;
      const finish = copy.asComponent(() => facetOf(copy).restore.finish(copy.instance, plan({ target }), copy.signal));
      await expect(finish).rejects.toThrow();
      await unpackAll(taken.streams);
    });

    it("restore the data of their time for the users of the settings", async () => {
      const steps = new Set<string>();
      const report: RecoveryPlan["report"] = ({ step }) => {
        steps.add(step);
      };
      await copy.asComponent(() => facetOf(copy).restore.finish(copy.instance, plan({ report }), copy.signal));
      expect([...steps]).toContain("recovering");
      const findings = await copy.asComponent(() =>
        facetOf(copy).examine(copy.instance, { target: plan().target, scratch: plan().scratch }, copy.signal),
      );
      expect(findings.length).toBeGreaterThan(0);
      expect(findings.filter(({ passed }) => !passed)).toEqual([]);
      expect(existsSync(plan().scratch)).toBe(false);
      await copy.bootstrap();
      await copy.start();
      await copy.driver.ready(copy.instance, copy.signal).catch((error: unknown) => {
        throw new Error(copy.output(), { cause: error });
      });
      const values = await withClient(copy, "of the copy", async (client) => [
        await client.read("before"),
        await client.read("after"),
      ]);
      expect(values).toEqual(["here", undefined]);
      const { dataTime } = taken.end;
      const before = [...acknowledged].filter(([, at]) => at < dataTime.getTime()).map(([name]) => name);
      expect(before.length).toBeGreaterThan(0);
      const missing = await withClient(copy, "of the copy", async (client) => {
        const absent: string[] = [];
        for (const name of before) if ((await client.read(name)) === undefined) absent.push(name);
        return absent;
      });
      expect({ dataTime, missing }).toEqual({ dataTime, missing: [] });
      await expect(withClient(copy, "of the source", (client) => client.read("before"))).rejects.toThrow();
      // The source is only read.
      expect(await withClient(source, "of the source", (client) => client.read("after"))).toBe("too late");
    });
  });
}

async function* chunks(bytes: Buffer): AsyncGenerator<Buffer> {
  const size = 64 << 10;
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}
