import { type ChildProcess, spawn } from "node:child_process";
import { createHash, createHmac, pbkdf2Sync, randomBytes } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { chmod, chown, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { InstanceSpecSchema, Lane, TaskClass, type TaskResult } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { findSoftware, imagesDirectory } from "../../image/src/node-image.ts";
import { Client } from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFailed, test, vi } from "vitest";
import { type ControllerEnd, startControllerEnd } from "../../test/support/controller-end.ts";
import { occupyPort } from "../../test/support/occupied-port.ts";

const found = findSoftware(imagesDirectory(process.env), "postgresql", "17");
const uid = 64_000 + (process.pid % 1_000);
const port = 20_000 + (process.pid % 900);
const password = "a-password-of-the-test";

/** A machine whose /usr and /etc are the node image's, as the provider makes it. Needs root for that. */
describe.skipIf(found === undefined || process.getuid?.() !== 0)("an agent with PostgreSQL", () => {
  let controller: ControllerEnd;
  let directory: string;
  let keeper: ChildProcess;
  let generation = 0n;

  beforeAll(async () => {
    controller = await startControllerEnd();
    directory = await mkdtemp(join(tmpdir(), "agent-"));
    await chmod(directory, 0o755);
    await mkdir(join(directory, "state"));
    const passwd = readFileSync(join(found?.image.root ?? "", "etc/passwd"), "utf8");
    writeFileSync(join(directory, "passwd"), `${passwd}holdfast:x:${uid}:${uid}::/tmp:/bin/sh\n`);
    await enroll();
    start();
    await vi.waitUntil(() => controller.hellos.length === 1, { timeout: 20_000, interval: 20 });
  });
  afterAll(async () => {
    keeper?.kill("SIGKILL");
    await controller?.close();
    await vi.waitUntil(() => postmasters().length === 0, { timeout: 10_000 });
    await rm(directory, { recursive: true, force: true, maxRetries: 10 });
  });

  async function enroll(): Promise<void> {
    const token = randomBytes(16).toString("hex");
    controller.tokens.add(token);
    const { address, caFingerprint } = controller;
    const file = join(directory, "state", "enrollment.json");
    const content = {
      installation_id: "test",
      machine_id: "m-1",
      controllers: [address],
      ca_fingerprint: caFingerprint,
      token,
    };
    writeFileSync(file, JSON.stringify(content), { mode: 0o600 });
    await chown(file, uid, uid);
  }

  function start(): void {
    const root = found?.image.root;
    const enter = `mount --bind ${root}/usr /usr && mount --bind ${root}/etc /etc && mount --bind ${directory}/passwd /etc/passwd && exec "$0" "$@"`;
    const main = join(import.meta.dirname, "../keeper/main.ts");
    const argv = [
      "--mount",
      "--pid",
      "--fork",
      "--kill-child",
      "--mount-proc",
      "sh",
      "-c",
      enter,
      process.execPath,
      main,
    ];
    keeper = spawn("unshare", argv, {
      env: {
        PATH: process.env["PATH"],
        HOLDFAST_MACHINE_ID: "m-1",
        HOLDFAST_MACHINE_UID: String(uid),
        HOLDFAST_STATE_DIR: join(directory, "state"),
        HOLDFAST_RUN_DIR: join(directory, "run"),
        HOLDFAST_DATA_DIR: join(directory, "data"),
      },
      stdio: "ignore",
    });
  }

  function converge(change: MessageInitShape<typeof InstanceSpecSchema> = {}): Promise<TaskResult> {
    generation += 1n;
    const instance = create(InstanceSpecSchema, {
      serviceId: "s-1",
      nodeId: "n-1",
      engine: "postgresql",
      version: "17",
      generation,
      term: 1n,
      running: true,
      vcpu: 1,
      memoryBytes: 1n << 30n,
      storageBytes: 1n << 30n,
      allowedCidrs: ["127.0.0.0/8"],
      address: "127.0.0.1",
      port,
      users: [{ username: "app_user", role: "admin", verifier: verifierOf(password) }],
      databases: ["defaultdb"],
      ...change,
    });
    const input = { case: "convergeInstance" as const, value: { instance } };
    return controller.perform({
      ownerId: "s-1",
      generation,
      term: 1n,
      lane: Lane.CONTROL,
      class: TaskClass.QUICK,
      input,
    });
  }

  /** Processes of this machine that are the first of PostgreSQL. */
  function postmasters(): number[] {
    return readdirSync("/proc")
      .map(Number)
      .filter((pid) => {
        try {
          const command = readFileSync(`/proc/${pid}/cmdline`, "latin1").split("\0");
          if (command[0]?.endsWith("bin/postgres") !== true || !command.some((word) => word.includes(directory)))
            return false;
          // A backend that was just forked still has the postmaster's words, but is not the first of its namespace.
          return /^NSpid:.*\t1$/m.test(readFileSync(`/proc/${pid}/status`, "latin1"));
        } catch {
          return false;
        }
      });
  }

  async function query(sql: string): Promise<unknown[]> {
    const client = new Client({
      host: "127.0.0.1",
      port,
      user: "app_user",
      password,
      database: "defaultdb",
      ssl: { ca: readFileSync(join(directory, "state/instance/tls/ca.crt"), "utf8"), servername: "db.local.test" },
      connectionTimeoutMillis: 5_000,
    });
    client.on("error", () => undefined);
    await client.connect();
    try {
      return (await client.query({ text: sql, rowMode: "array" })).rows.flat();
    } finally {
      await client.end();
    }
  }

  function agentLog(): string {
    const log = join(directory, "state/log");
    return readdirSync(log)
      .map((name) => readFileSync(join(log, name), "utf8"))
      .join("\n");
  }

  beforeEach(() => onTestFailed(() => console.log(agentLog())));

  const isUp = () =>
    query("SELECT 1").then(
      () => true,
      () => false,
    );

  test("goes from nothing to a query over TLS", async () => {
    const result = await converge();
    expect(result.failure).toBeUndefined();
    expect(await query("SELECT 1")).toEqual([1]);
    await query("CREATE TABLE kept (n int)");
    await query("INSERT INTO kept VALUES (7)");
    await expect
      .poll(() => controller.observations.at(-1)?.checks.map(({ name, status }) => `${name} ${status}`))
      .toEqual(expect.arrayContaining(["liveness healthy", "storage healthy", "certificate healthy"]));
  });

  test("keeps the engine while the agent is killed, and starts a killed one again", async () => {
    const [before] = postmasters();
    const { sessionId } = controller.hellos.at(-1) ?? {};
    process.kill(pidOfAgent(directory), "SIGKILL");
    await expect.poll(() => controller.hellos.at(-1)?.sessionId !== sessionId, { timeout: 20_000 }).toBe(true);
    expect((await converge()).failure).toBeUndefined();
    expect(postmasters()).toEqual([before]);
    process.kill(before as number, "SIGKILL");
    await expect
      .poll(() => postmasters().filter((pid) => pid !== before).length, { timeout: 20_000 })
      .toBeGreaterThan(0);
    await expect.poll(isUp, { timeout: 20_000 }).toBe(true);
    expect(await query("SELECT n FROM kept")).toEqual([7]);
  });

  test("takes back a parameter that keeps it from starting and says so in its words", async () => {
    const result = await converge({ parameters: { shared_buffers: "900GB" }, restartCount: 1n });
    expect(result.failure).toBeUndefined();
    expect(result.output.value).toMatchObject({ rejected: { shared_buffers: expect.any(String) } });
    expect(await query("SELECT n FROM kept")).toEqual([7]);
  });

  test("shuts addresses out that are not allowed any more, at once", async () => {
    await converge({ allowedCidrs: ["10.0.0.0/8"], restartCount: 1n });
    expect(await isUp()).toBe(false);
    await converge({ restartCount: 1n });
    expect(await isUp()).toBe(true);
  });

  test("tells what PostgreSQL logged", async () => {
    const input = { case: "readLogs" as const, value: { limit: 1_000 } };
    const result = await controller.perform({
      ownerId: "s-1",
      generation,
      term: 1n,
      lane: Lane.QUERY,
      class: TaskClass.QUICK,
      input,
    });
    if (result.output.case !== "readLogs") throw new Error(JSON.stringify(result.failure));
    const { lines } = result.output.value;
    expect(lines.some(({ message }) => message.includes("database system is ready to accept connections"))).toBe(true);
    expect(lines.every(({ time }) => Number(time?.seconds) > 1_600_000_000)).toBe(true);
  });

  test("says what keeps it from starting in words to act on, and starts once that is gone", async () => {
    const control = join(directory, "data/postgresql/global/pg_control");
    const stopped = () => converge({ running: false, restartCount: 1n });
    const failed = async (change = {}) => (await converge({ restartCount: 1n, ...change })).failure?.message;
    await stopped();
    expect(await failed({ version: "99" })).toMatch(/^This machine's image has no postgresql 99 that runs: /);
    const busy = await occupyPort(port, () => undefined);
    expect(await failed()).toMatch(/^Another process listens on the engine's port\./);
    await busy.release();
    await expect.poll(isUp, { timeout: 20_000 }).toBe(true);
    await stopped();
    const good = readFileSync(control);
    writeFileSync(control, Buffer.alloc(good.length, 1));
    expect(await failed()).toMatch(/^The engine finds its data damaged and does not start\. .* It said: /);
    writeFileSync(control, good);
    await expect.poll(isUp, { timeout: 20_000 }).toBe(true);
    expect(await query("SELECT n FROM kept")).toEqual([7]);
  });

  test("comes back with its data when the machine was killed as a whole", async () => {
    keeper.kill("SIGKILL");
    await expect.poll(() => postmasters().length, { timeout: 10_000 }).toBe(0);
    await enroll();
    start();
    await expect.poll(isUp, { timeout: 20_000 }).toBe(true);
    expect(await query("SELECT n FROM kept")).toEqual([7]);
    expect((await converge({ running: false, restartCount: 1n })).failure).toBeUndefined();
    expect(postmasters()).toEqual([]);
  });
});

function pidOfAgent(directory: string): number {
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const command = readFileSync(`/proc/${pid}/cmdline`, "latin1").split("\0");
      if (command[0] !== process.execPath || !command.some((word) => word.endsWith("agent/src/main.ts"))) continue;
      if (readFileSync(`/proc/${pid}/environ`, "latin1").includes(directory)) return Number(pid);
    } catch {
      // It ended while it was looked at.
    }
  }
  throw new Error("there is no agent");
}

/** RFC 5803 as PostgreSQL stores it. */
function verifierOf(secret: string): string {
  const salt = randomBytes(16);
  const salted = pbkdf2Sync(secret, salt, 4096, 32, "sha256");
  const stored = createHash("sha256").update(createHmac("sha256", salted).update("Client Key").digest()).digest();
  const server = createHmac("sha256", salted).update("Server Key").digest();
  return `SCRAM-SHA-256$4096:${salt.toString("base64")}$${stored.toString("base64")}:${server.toString("base64")}`;
}
