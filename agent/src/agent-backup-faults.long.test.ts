import { createHash, randomBytes } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { create } from "@bufbuild/protobuf";
import { labelsOf, partFormat } from "@holdfast/common/backup/backup-manifest.ts";
import { type BackupReader, openBackup } from "@holdfast/common/backup/backup-reader.ts";
import { attemptPrefix } from "@holdfast/common/backup/object-names.ts";
import { primaryLeaseMs } from "@holdfast/common/primary-lease.ts";
import { openStream } from "@holdfast/common/sealed/sealed-stream.ts";
import { type BackupObservation, RestoreSourceSchema } from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import { Lane, TaskClass } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { Client } from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFailed, onTestFinished, test } from "vitest";
import { signalIfAlive } from "../keeper/signal-process.ts";
import { startTestStore, type TestStore } from "@holdfast/testing/controller/store.ts";
import { connectPostgresql, scramVerifier } from "@holdfast/testing/engines/engine-clients.ts";
import { type AgentMachine, startAgentMachine, whyNoAgentMachine } from "@holdfast/testing/machines/agent-machine.ts";
import { primaryByLease, watchIntervals } from "@holdfast/testing/machines/watch-intervals.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

const skipped = whyNoAgentMachine("postgresql", "17");
const password = "a-password-of-the-test";
const key = { id: "k-1", secret: randomBytes(32).toString("base64") };
const rows = 200_000;
const frameBytes = 4 + 65_536 + 16;
/** Number of parts stored in parallel. */
const partsAtOnce = 3;

/** A backup that is interrupted and repeated, and restores of it after it was changed in the store. */
describe.skipIf(skipped !== undefined)(
  `backups that are killed or tampered with${skipped === undefined ? "" : ` (skipped: ${skipped})`}`,
  () => {
    let store: TestStore;
    let source: AgentMachine;
    let target: AgentMachine;
    /** The backup of all restores here: its second attempt. */
    let intact: BackupReader;
    let observation: BackupObservation;
    /** Another backup of the same service under the same key. */
    let older: BackupReader;

    beforeAll(async () => {
      store = await startTestStore();
      const users = [{ username: "app_user", role: "admin", verifier: scramVerifier(password) }];
      const spec = { users, databases: ["defaultdb"] };
      source = await startAgentMachine({ engine: "postgresql", version: "17", spec });
      target = await startAgentMachine({ engine: "postgresql", version: "17", spec: { ...spec, serviceId: "s-2" } });
      for (const each of [source, target]) each.controller.signer = store.signer;
      expect((await source.converge()).failure).toBeUndefined();
      // Some parts contain only this table, which does not change any more.
      await sql(
        source,
        `CREATE TABLE kept AS SELECT i, repeat(md5(i::text), 8) AS line FROM generate_series(1, ${rows}) i`,
      );
      await sql(source, "VACUUM (FREEZE) kept");
    });
    afterAll(async () => {
      await Promise.all([source?.remove(), target?.remove()]);
      await store?.remove();
    });
    beforeEach(() => onTestFailed(() => console.log(source.log(), target.log())));

    async function sql(machine: AgentMachine, text: string): Promise<Record<string, unknown>[]> {
      const client = await connectPostgresql(machine.endpoint, { user: "app_user", password });
      try {
        return (await client.query(text)).rows as Record<string, unknown>[];
      } finally {
        await client.end();
      }
    }

    const locationOf = (backup: string, attempt: number) => ({ service: "s-1", backup, attempt });
    const seen = () => source.controller.observations.at(-1)?.backup;

    async function begin(backupId: string, attempt: number): Promise<void> {
      const input = { case: "startBackup", value: { backupId, attempt, kind: "full", key } } as const;
      const of = { ...source.header, lane: Lane.CONTROL, class: TaskClass.QUICK };
      // The previous job may still be ending, although its backup is stored.
      await waitUntil("it may begin", async () => {
        const { failure } = await source.controller.perform({ ...of, input });
        if (failure?.retryable !== true) expect(failure).toBeUndefined();
        return failure === undefined;
      });
    }

    async function ended(backupId: string, attempt: number): Promise<BackupObservation> {
      const isFinished = () => {
        const newest = seen();
        const isIt = newest?.backupId === backupId && newest.attempt === attempt && newest.state !== "running";
        return isIt ? newest : undefined;
      };
      return waitUntil(`attempt ${attempt} of ${backupId} is over`, isFinished, { describe: () => source.log() });
    }

    function open(backup: string, attempt: number): Promise<BackupReader> {
      const sealing = { id: key.id, secret: Buffer.from(key.secret, "base64") };
      return openBackup({ location: locationOf(backup, attempt), key: sealing, get: store.objects.get });
    }

    async function storedBy(backup: string, attempt: number): Promise<string[]> {
      const { objects } = await store.objects.list(attemptPrefix(locationOf(backup, attempt)), { limit: 1_000 });
      return objects.map(({ key: name }) => name).filter((name) => /\/\d{6}$/.test(name));
    }

    /** Digests of the parts' contents, in an order that does not depend on their names. */
    async function contentOf(object: string): Promise<string> {
      const stored = await store.objects.get(object);
      if (stored === undefined) throw new Error(`${object} is not there`);
      const expected = { ...labelsOf(partFormat, locationOf("b-1", 0), object), keyVersion: key.id };
      const plain = await buffer(openStream(stored, expected, () => Buffer.from(key.secret, "base64")));
      return createHash("sha256").update(plain).digest("hex");
    }

    test("after a kill of its component, a backup repeats at most the parts in flight", async () => {
      await begin("b-1", 1);
      await waitUntil("some of it is stored", async () => (await storedBy("b-1", 1)).length >= 3, { everyMs: 5 });
      await store.stop();
      for (const pid of source.pidsOfCode("backup")) signalIfAlive(pid, "SIGKILL");
      expect(await ended("b-1", 1)).toMatchObject({ state: "failed", errorCode: "interrupted" });
      await store.start();

      await begin("b-1", 2);
      observation = await ended("b-1", 2);
      expect(observation).toMatchObject({ state: "stored", error: "" });
      intact = await open("b-1", 2);
      await intact.verify("all");
      const [first, second] = [await storedBy("b-1", 1), await storedBy("b-1", 2)];
      const takenOver = first.filter((name) => intact.objects.has(name));
      expect(takenOver.length).toBeGreaterThan(0);
      expect(second.filter((name) => !intact.objects.has(name))).toEqual([]);
      const isNew = new Set(await Promise.all(second.map(contentOf)));
      expect(isNew.size).toBe(second.length);
      const again = (await Promise.all(first.map(contentOf))).filter((content) => isNew.has(content));
      // Parts that the store had without an acknowledgment.
      expect(again.length).toBeLessThanOrEqual(partsAtOnce);
      // No file of it remains beside the data.
      expect(await source.asEngine(["ls", join(source.directory, "data")])).not.toContain("backup.parts");
    });

    const partsOf = ({ manifest }: BackupReader) => manifest.streams.flatMap(({ parts }) => parts);
    const fileOf = (object: string) => join(store.directory, object);
    /** The largest part: it has many frames. */
    function partOf(reader: BackupReader): string {
      const [biggest] = partsOf(reader).toSorted((a, b) => b.bytes - a.bytes);
      return biggest?.object ?? "";
    }
    const headOf = (sealed: Buffer) => 9 + sealed.readUInt32BE(5);
    function frames(sealed: Buffer): { readonly head: Buffer; readonly at: (index: number) => Buffer } {
      const start = headOf(sealed);
      return {
        head: sealed.subarray(0, start),
        at: (index) => sealed.subarray(start + index * frameBytes, start + (index + 1) * frameBytes),
      };
    }
    const without = (sealed: Buffer, count: number) => sealed.subarray(headOf(sealed) + count * frameBytes);

    type Tamper = (sealed: Buffer) => Buffer | Promise<Buffer>;
    const tampers: readonly (readonly [what: string, change: Tamper])[] = [
      ["with a flipped bit", (sealed) => changedAt(sealed, Math.floor(sealed.length / 2))],
      ["that is cut", (sealed) => sealed.subarray(0, Math.floor(sealed.length / 2))],
      [
        "whose frames have another order",
        (sealed) => {
          const { head, at } = frames(sealed);
          return Buffer.concat([head, at(1), at(0), without(sealed, 2)]);
        },
      ],
      [
        "with a frame of an older backup under the same key",
        async (sealed) => {
          const { head, at } = frames(sealed);
          const old = frames(await readFile(fileOf(partOf(older))));
          return Buffer.concat([head, at(0), old.at(1), without(sealed, 2)]);
        },
      ],
      ["that is another part", async () => readFile(fileOf(otherPart()))],
      ["that is the same part of an older backup", async () => readFile(fileOf(partOf(older)))],
      [
        "with another header",
        (sealed) => {
          const start = headOf(sealed);
          const header = JSON.parse(sealed.toString("utf8", 9, start)) as Record<string, string>;
          const head = Buffer.from(JSON.stringify({ ...header, backup: "b-2" }));
          const length = Buffer.alloc(4);
          length.writeUInt32BE(head.length);
          return Buffer.concat([sealed.subarray(0, 5), length, head, sealed.subarray(start)]);
        },
      ],
    ];
    function otherPart(): string {
      return partsOf(intact).find(({ object }) => object !== partOf(intact))?.object ?? "";
    }
    function changedAt(sealed: Buffer, at: number): Buffer {
      const changed = Buffer.from(sealed);
      changed.writeUInt8(changed.readUInt8(at) ^ 1, at);
      return changed;
    }

    let restores = 0;
    function sourceOf(secret = key.secret) {
      restores += 1;
      return create(RestoreSourceSchema, {
        restoreId: `r-${restores}`,
        serviceId: "s-1",
        backup: { backupId: "b-1", attempt: 2, key: { ...key, secret }, manifestSha256: observation.manifestSha256 },
        target: { target: { case: "backupEnd", value: true } },
      });
    }

    /** Expects that a restore failed permanently and reported so, and that no engine runs over its remains. */
    async function refused(secret?: string): Promise<void> {
      const { observations } = target.controller;
      observations.splice(0);
      const { failure } = await target.converge({ source: sourceOf(secret) });
      expect(failure?.message).toContain("The restore failed: ");
      const newest = await waitUntil("it is reported", () => {
        const restore = observations.at(-1)?.restore;
        return restore?.state === "failed" ? restore : undefined;
      });
      expect(newest).toMatchObject({ restoreId: `r-${restores}`, errorCode: "damaged" });
      expect(newest.damagedObject === "" || newest.damagedObject.startsWith("services/s-1/backups/b-1/")).toBe(true);
      expect(newest.reason).not.toBe("");
      expect(observations.map(({ state }) => state)).not.toContain("running");
      expect(target.pidsOf("/postgres")).toEqual([]);
    }

    test("an older backup of the same data exists", async () => {
      await begin("b-0", 1);
      expect(await ended("b-0", 1)).toMatchObject({ state: "stored" });
      older = await open("b-0", 1);
    });

    test.each(tampers)("a part %s fails the restore", async (_, change) => {
      const file = fileOf(partOf(intact));
      const before = await readFile(file);
      const after = await change(before);
      expect(after.equals(before)).toBe(false);
      await writeFile(file, after);
      try {
        await refused();
      } finally {
        await writeFile(file, before);
      }
    });

    test("a wrong key fails the restore", () => refused(randomBytes(32).toString("base64")));

    test("the untouched backup restores on the machine on which the restore failed", async () => {
      expect((await target.converge({ source: sourceOf() })).failure).toBeUndefined();
      const [row] = await sql(target, "SELECT count(*)::int AS count FROM kept");
      expect(row).toEqual({ count: rows });
    });

    test("a restore whose component was killed completes on the next attempt", async () => {
      const next = sourceOf();
      const converging = target.converge({ source: next });
      const fetched = () => target.controller.observations.at(-1)?.restore;
      await waitUntil(
        "it is under way",
        () => fetched()?.restoreId === next.restoreId && (fetched()?.restoredBytes ?? 0n) > 0n,
        {
          everyMs: 5,
        },
      );
      for (const pid of target.pidsOfCode("backup")) signalIfAlive(pid, "SIGKILL");
      expect((await converging).failure?.message).toContain("The restore ended without an outcome.");
      expect((await target.converge({ source: next })).failure).toBeUndefined();
      const [row] = await sql(target, "SELECT count(*)::int AS count FROM kept");
      expect(row).toEqual({ count: rows });
      expect(await target.asEngine(["ls", join(target.directory, "data")])).not.toContain("scratch");
    });

    test("probes and primary lease are on time during backups at full speed", async () => {
      expect((await source.converge(primaryByLease)).failure).toBeUndefined();
      const { port } = source.endpoint.instance.spec;
      const owner = new Client({ host: join(source.directory, "run/engine"), port, user: "holdfast" });
      await owner.connect();
      onTestFinished(() => owner.end());
      const queryTime = async (text: string) => (await owner.query<{ at: Date }>(text)).rows;
      const gapsSeen = await watchIntervals(source, queryTime, async () => {
        const until = Date.now() + 8_000;
        for (let attempt = 1; Date.now() < until; attempt += 1) {
          await begin("b-pace", attempt);
          expect(await ended("b-pace", attempt)).toMatchObject({ state: "stored", error: "" });
        }
      });
      for (const gaps of [gapsSeen.probes, gapsSeen.leaseRequests]) expect(gaps.length).toBeGreaterThan(4);
      // An engine without a response for five seconds counts as unresponsive.
      expect(Math.max(...gapsSeen.probes)).toBeLessThan(5_000);
      expect(Math.max(...gapsSeen.leaseRequests)).toBeLessThan(primaryLeaseMs - 1_000);
    });
  },
);
