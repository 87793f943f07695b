import { spawn } from "node:child_process";
import { chownSync, createReadStream, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createQueue } from "@holdfast/sdk/queue/index.ts";
import { hasEngine } from "@holdfast/testing/engines/engine-machine.ts";
import { freePorts } from "@holdfast/testing/platform/free-ports.ts";
import { type TestImage, testImage } from "@holdfast/testing/engines/test-image.ts";
import { asRoot, testUid } from "@holdfast/testing/platform/platform-software.ts";
import { createQueueDatabase, type QueueDatabase } from "@holdfast/testing/engines/queue-database.ts";
import type { TemporaryProcess } from "@holdfast/testing/platform/temporary-process.ts";

const samples = join(import.meta.dirname, "..", "..", "docs", "how-to", "samples", "queues");

describe.skipIf(!hasEngine("postgresql", "17"))("a queue has third-party clients", () => {
  let database: QueueDatabase;
  let image: TestImage | string;
  let directory = "";
  let bouncer: TemporaryProcess | undefined;
  beforeAll(async () => {
    image = await testImage("queues");
    database = await createQueueDatabase();
    directory = mkdtempSync(join(tmpdir(), "holdfast-queue-clients-"));
    if (asRoot) chownSync(directory, testUid, testUid);
    // The first run builds an image, which takes minutes on a busy machine.
  }, 600_000);
  afterAll(async () => {
    await database?.remove();
    await bouncer?.end("SIGINT");
    rmSync(directory, { recursive: true, force: true });
  });

  const environment = () => {
    const { machine } = database;
    return {
      PGHOST: machine.instance.spec.address,
      PGPORT: String(machine.instance.spec.port),
      PGUSER: "app_user",
      PGPASSWORD: "secret",
      PGDATABASE: "defaultdb",
      PGSSLMODE: "verify-ca",
      PGSSLROOTCERT: join(machine.instance.paths.tls, "ca.crt"),
    };
  };
  const asClient = (argv: readonly string[]) => {
    if (typeof image === "string") throw new Error(image);
    return image.run(argv, [samples, database.machine.instance.paths.tls], environment());
  };

  /** Samples of the documentation by name, each run as its first lines describe. */
  const programs: Readonly<Record<string, (queue: string) => Promise<string>>> = {
    "worker.py": (queue) => asClient(["/usr/bin/python3", join(samples, "worker.py"), queue]),
    "worker.sql": (queue) =>
      asClient(["/usr/bin/psql", "-XqAt", "-F ", "-v", `queue=${queue}`, "-f", join(samples, "worker.sql")]),
    "Worker.java": (queue) =>
      asClient([
        "/usr/lib/jvm/default-java/bin/java",
        "-cp",
        "/usr/share/java/postgresql.jar",
        join(samples, "Worker.java"),
        queue,
      ]),
    // The program is read from standard input, so that packages are resolved in the tests' directory.
    "worker.mjs": async (queue) => {
      const child = spawn(process.execPath, ["--input-type=module", "-", queue], {
        cwd: join(import.meta.dirname, ".."),
        // This client ignores PGSSLROOTCERT, and the certificate does not have the address.
        env: { ...process.env, ...environment(), PGSSLMODE: "no-verify" },
        stdio: ["pipe", "pipe", "inherit"],
      });
      createReadStream(join(samples, "worker.mjs")).pipe(child.stdin);
      const [output, [status]] = await Promise.all([text(child.stdout), once(child, "exit")]);
      expect(status).toBe(0);
      return output;
    },
  };

  it.each(Object.keys(programs))("sends, claims, acks and nacks by %s", async (name) => {
    const queue = name.toLowerCase().replace(".", "-");
    await database.createQueue(queue);
    const output = (await programs[name]?.(queue)) ?? "";
    const ids = output
      .trim()
      .split("\n")
      .map((line) => /^(.*) (\d+)$/.exec(line) ?? []);
    expect(ids.map(([, what]) => what)).toEqual(["acked", "acked", "given back"]);
    const { rows } = await database
      .pool(1)
      .query("SELECT id, payload, last_error, attempt_count FROM mdb_queue.messages WHERE queue_name = $1", [queue]);
    expect(rows).toEqual([{ id: ids[2]?.[2], payload: { number: 1 }, last_error: "not yet", attempt_count: 1 }]);
  });

  it("is processed by pgbench with users' statements: each message is acked once, and none is lost", async () => {
    const { machine } = database;
    const { spec, paths } = machine.instance;
    await database.createQueue("benched");
    const pool = database.pool(1);
    await pool.query(`CREATE TABLE sent (message bigint); CREATE TABLE claims (message bigint, worker text);
      CREATE TABLE acked (message bigint, worker text)`);
    const scripts = {
      send: `WITH made AS (
          INSERT INTO mdb_queue.messages (queue_name, payload, max_attempts, visible_at)
          SELECT name, '{"by": "pgbench"}', max_attempts, now() FROM mdb_queue.queues
          WHERE name = 'benched' AND deleted_at IS NULL RETURNING id
        ) INSERT INTO sent SELECT id FROM made;`,
      work: `\\set n random(1, 9000000000000000000)
        WITH taken AS MATERIALIZED (
          SELECT id FROM mdb_queue.messages
          WHERE queue_name = 'benched' AND visible_at <= now() AND attempt_count < max_attempts
          ORDER BY id LIMIT 3 FOR UPDATE SKIP LOCKED
        ), claimed AS (
          UPDATE mdb_queue.messages m SET visible_at = now() + interval '1 h', attempt_count = attempt_count + 1,
            claimed_by = ':client_id-:n' FROM taken WHERE m.id = taken.id RETURNING m.id
        ) INSERT INTO claims SELECT id, ':client_id-:n' FROM claimed;
        WITH removed AS (
          DELETE FROM mdb_queue.messages m USING claims c WHERE c.worker = ':client_id-:n' AND m.id = c.message
            AND m.queue_name = 'benched' AND m.claimed_by = ':client_id-:n' RETURNING m.id
        ) INSERT INTO acked SELECT id, ':client_id-:n' FROM removed;`,
    };
    const files = Object.entries(scripts).map(([name, text]) => {
      const file = join(paths.run, `${name}.sql`);
      writeFileSync(file, text, { mode: 0o644 });
      return file;
    });
    const where = ["-h", spec.address, "-p", String(spec.port), "-U", "app_user", "defaultdb"];
    const pgbench = (...options: readonly string[]) =>
      machine.run(
        [
          "/usr/bin/env",
          "PGPASSWORD=secret",
          "PGSSLMODE=require",
          `${paths.software}/bin/pgbench`,
          "-n",
          ...options,
          ...where,
        ],
        { signal: machine.signal },
      );
    await pgbench("-c", "8", "-t", "150", "-f", `${files[0]}@1`, "-f", `${files[1]}@1`);
    const count = async (of: string) =>
      Number((await pool.query<{ n: string }>(`SELECT count(*) AS n FROM ${of}`)).rows[0]?.n);
    const [sent, acked] = [await count("sent"), await count("acked")];
    expect(acked).toBeGreaterThan(0);
    expect(await count("(SELECT FROM acked GROUP BY message HAVING count(*) > 1) AS twice")).toBe(0);
    expect(await count("(SELECT FROM claims GROUP BY message HAVING count(*) > 1) AS twice")).toBe(0);
    expect(acked + (await count("mdb_queue.messages WHERE queue_name = 'benched'"))).toBe(sent);
    expect(await count("acked WHERE message NOT IN (SELECT message FROM sent)")).toBe(0);
  });

  it("is processed behind PgBouncer in transaction mode", async () => {
    if (typeof image === "string") throw new Error(image);
    const [port = 0] = await freePorts(1);
    const { PGHOST, PGPORT } = environment();
    const config = join(directory, "pgbouncer.ini");
    writeFileSync(
      config,
      `[databases]
defaultdb = host=${PGHOST} port=${PGPORT} dbname=defaultdb user=app_user password=secret
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 3
server_tls_sslmode = require
`,
    );
    bouncer = await image.start(["/usr/sbin/pgbouncer", config], [directory], /process up/);
    const pool = new pg.Pool({ host: "127.0.0.1", port, user: "app_user", database: "defaultdb", max: 10 });
    await database.createQueue("bounced");
    const queue = createQueue<{ n: number }>({ pool, queue: "bounced" });
    await queue.enqueue(Array.from({ length: 500 }, (_, n) => ({ n })));
    const seen: number[] = [];
    const workers = [1, 2, 3].map(() => queue.work(async ({ payload }) => void seen.push(payload.n), { batch: 20 }));
    await expect.poll(() => seen.length).toBe(500);
    const tallies = await Promise.all(workers.map((worker) => worker.stop()));
    expect(tallies.reduce((sum, { acked }) => sum + acked, 0)).toBe(500);
    expect(new Set(seen).size).toBe(500);
    const { rows } = await pool.query(
      "SELECT count(*)::integer AS n FROM mdb_queue.messages WHERE queue_name = 'bounced'",
    );
    expect(rows).toEqual([{ n: 0 }]);
    await pool.end();
  });
});
