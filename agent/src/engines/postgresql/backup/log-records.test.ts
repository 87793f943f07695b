import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createEngineMachine, type EngineMachine, hasEngine } from "@holdfast/testing/engines/engine-machine.ts";
import type { ArchivedLogReader } from "../../backup-facet.ts";
import { createPostgresqlDriver } from "../driver.ts";
import { dataDirectory, program } from "../layout.ts";
import { withSession } from "../session.ts";
import { type LogBytes, type LogRecord, readLogRecords } from "./log-records.ts";
import { parseLsn, formatLsn, segmentStart } from "./lsn.ts";
import { stopPoint } from "./stop-point.ts";

type Transaction = LogRecord & { readonly kind: "transaction" };

const objectBytes = 256 << 10;
const epochUs = 946_684_800_000_000n;
const transactionLine = /, lsn: (\S+), .* desc: (COMMIT|ABORT|COMMIT_PREPARED|ABORT_PREPARED|PREPARE) /;

describe.each(["17", "18"])("WAL records of PostgreSQL %s", (version) => {
  describe.skipIf(!hasEngine("postgresql", version))("read from its pages", () => {
    let machine: EngineMachine;
    /** Records as pg_waldump prints them. */
    let engine: readonly string[];
    let segments: readonly { readonly name: string; readonly start: bigint; readonly bytes: Buffer }[];

    beforeAll(async () => {
      machine = await createEngineMachine(async (deps) => createPostgresqlDriver(deps), "postgresql", version, {
        parameters: { max_prepared_transactions: "4" },
      });
      await machine.bringUp();
      const statements = [
        "CREATE TABLE public.rows (i int)",
        // Records over several pages and page boundaries of each kind.
        ...Array.from({ length: 40 }, (_, n) => `SELECT pg_logical_emit_message(true, 'x', repeat('y', ${n * 1_777}))`),
        "BEGIN; SAVEPOINT a; INSERT INTO public.rows VALUES (1); ROLLBACK TO a; INSERT INTO public.rows VALUES (2); COMMIT",
        "BEGIN; INSERT INTO public.rows VALUES (3); ROLLBACK",
        "BEGIN; INSERT INTO public.rows VALUES (4); PREPARE TRANSACTION 'first'",
        "BEGIN; INSERT INTO public.rows VALUES (5); PREPARE TRANSACTION 'second'",
        "SELECT pg_switch_wal()",
        "COMMIT PREPARED 'first'",
        "ROLLBACK PREPARED 'second'",
        "SELECT pg_replication_origin_create('elsewhere')",
        "SELECT pg_replication_origin_session_setup('elsewhere'); BEGIN; SELECT pg_replication_origin_xact_setup('0/1', now()); INSERT INTO public.rows VALUES (6); COMMIT",
        "INSERT INTO public.rows SELECT * FROM generate_series(1, 20000)",
        "SELECT pg_switch_wal()",
      ];
      for (const statement of statements)
        await withSession(machine.instance, machine.signal, (session) => session.rows(statement));
      await machine.stop("SIGKILL");
      const directory = join(dataDirectory(machine.instance), "pg_wal");
      const names = (await readdir(directory)).toSorted();
      segments = await Promise.all(
        names.flatMap((name) => {
          const start = segmentStart(name)?.position;
          return start === undefined ? [] : [readFile(join(directory, name)).then((bytes) => ({ name, start, bytes }))];
        }),
      );
      engine = await byEngine();
    }, 60_000);
    afterAll(() => machine?.remove());

    async function byEngine(): Promise<string[]> {
      const directory = join(dataDirectory(machine.instance), "pg_wal");
      const start = `--start=${formatLsn((segments[0]?.start ?? 0n) + 40n)}`;
      const argv = [program(machine.instance, "pg_waldump"), "--path", directory, "--rmgr=Transaction", start];
      const file = join(machine.instance.paths.run, "transactions");
      // pg_waldump fails at the end of the log.
      await machine.run(["/bin/sh", "-c", 'file=$0; "$@" > "$file" 2> /dev/null; :', file, ...argv], {
        env: { TZ: "UTC" },
        signal: machine.signal,
      });
      const printed = await readFile(file, "utf8");
      return printed.split("\n").flatMap((line) => {
        const [, position = "", kind = ""] = transactionLine.exec(line) ?? [];
        const [, day, second, micros = ""] = /(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)\.(\d+) UTC/.exec(line) ?? [];
        if (position === "") return [];
        const timeUs = BigInt(Date.parse(`${day}T${second}Z`)) * 1_000n + BigInt(micros.padEnd(6, "0")) - epochUs;
        return [`${parseLsn(position)} ${kind === "PREPARE" ? "prepared" : timeUs}`];
      });
    }

    async function* pieces(size: number, from = 0): AsyncGenerator<LogBytes> {
      const bytes = Buffer.concat(segments.map((segment) => segment.bytes));
      for (let at = from; at < bytes.length; at += size)
        yield { from: (segments[0]?.start ?? 0n) + BigInt(at), bytes: bytes.subarray(at, at + size) };
    }

    async function read(from: AsyncIterable<LogBytes>): Promise<LogRecord[]> {
      const records: LogRecord[] = [];
      for await (const record of readLogRecords(from)) records.push(record);
      return records;
    }

    const lines = (records: readonly LogRecord[], engine: readonly string[]) =>
      records.flatMap((record) => {
        if (record.kind !== "transaction") return [];
        const isPrepared = engine.includes(`${record.position} prepared`);
        return [`${record.position} ${isPrepared ? "prepared" : record.timeUs}`];
      });

    it.each([8_192, 1_000, 99_991, 16 << 20])("equal those of pg_waldump, in pieces of %i bytes", async (size) => {
      expect(engine.length).toBeGreaterThan(50);
      expect(engine.filter((line) => line.endsWith("prepared"))).toHaveLength(2);
      expect(lines(await read(pieces(size)), engine)).toEqual(engine);
    });

    it("are read from any position, without a record whose beginning is missing", async () => {
      const all = await read(pieces(1 << 20));
      const positions = new Set(all.map(({ position }) => position));
      for (let from = 0; from < 3 << 20; from += 577_777) {
        const found = await read(pieces(65_536, from));
        expect(found.filter(({ position }) => !positions.has(position))).toEqual([]);
        const page = (segments[0]?.start ?? 0n) + BigInt(Math.ceil(from / 8_192) * 8_192);
        expect(found).toEqual(all.filter(({ position }) => position >= page));
      }
    });

    /** Objects of an archive; with `times` each has the time of its last transaction. */
    function objects(
      all: readonly LogRecord[],
      times: boolean,
    ): { readonly log: ArchivedLogReader; readonly read: number[] } {
      const bytes = Buffer.concat(segments.map((segment) => segment.bytes));
      const start = segments[0]?.start ?? 0n;
      const reads: number[] = [];
      const log: ArchivedLogReader = {
        count: Math.ceil(bytes.length / objectBytes),
        settings: async () => ({}),
        async at(index) {
          reads.push(index);
          const [from, to] = [index, index + 1].map((n) => start + BigInt(n * objectBytes));
          const newest = all.findLast((each) => each.kind === "transaction" && each.position < (to ?? 0n));
          const time = times && newest?.kind === "transaction" ? msOf(newest).toISOString() : "";
          const range = { branch: "1", from: formatLsn(from ?? 0n), to: formatLsn(to ?? 0n) };
          const header = { service: "s", term: 1, sequence: index + 1, ...range, time };
          return { header, log: bytes.subarray(index * objectBytes, (index + 1) * objectBytes) };
        },
      };
      return { log, read: reads };
    }

    const msOf = ({ timeUs }: Transaction) => new Date(Number((timeUs + epochUs) / 1_000n));

    it.each([true, false])(
      "end a recovery at the last transaction before its target (times in the log: %s)",
      async (times) => {
        const transactions = (await read(pieces(1 << 20))).filter((each) => each.kind === "transaction");
        for (const [index, each] of transactions.entries()) {
          const time = msOf(each);
          const isLater = ({ timeUs }: Transaction) => timeUs + epochUs > BigInt(time.getTime()) * 1_000n;
          const first = transactions.findIndex(isLater);
          if (index % 5 !== 0 || first < 1) continue;
          const { log, read: reads } = objects(transactions, times);
          expect(await stopPoint(log, time, undefined)).toBe(transactions[first - 1]?.position);
          // A search, and the objects from the stop to a transaction of a later millisecond (the resolution of objects'
          // times) or to the end of the log: CREATE DATABASE writes many objects without a transaction.
          const objectOf = ({ position }: Transaction) => Number(position - (segments[0]?.start ?? 0n)) / objectBytes;
          const next = transactions.find((later) => msOf(later) > time);
          const end = next === undefined ? log.count : objectOf(next);
          const between = end - objectOf(transactions[first - 1] ?? each);
          if (times) expect(new Set(reads).size).toBeLessThan(Math.log2(log.count) + 8 + between);
        }
        const { log } = objects(transactions, times);
        expect(await stopPoint(log, new Date(), undefined)).toBeUndefined();
        expect(await stopPoint(log, new Date(0), undefined)).toBeUndefined();
        expect(await stopPoint(undefined, new Date(), undefined)).toBeUndefined();
      },
    );
  });
});
