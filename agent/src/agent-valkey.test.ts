import { type ChildProcess, spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { chmod, chown, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { InstanceSpecSchema, Lane, TaskClass, type TaskResult } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { findSoftware, imagesDirectory } from "../../image/src/node-image.ts";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFailed, test, vi } from "vitest";
import { type ControllerEnd, startControllerEnd } from "../../test/support/controller-end.ts";
import { connectValkey, valkeyClient } from "../../test/support/engine-clients.ts";
import type { ConformanceClient } from "./engines/engine-conformance.ts";

const found = findSoftware(imagesDirectory(process.env), "valkey", "8.1");
const uid = 65_001 + (process.pid % 400);
const port = 19_000 + (process.pid % 900);
const password = "a-password-of-the-test";
const diskBytes = 64 << 20;

/** A machine out of the node image with a data disk of its own, small enough to be filled. Needs root for that. */
describe.skipIf(found === undefined || process.getuid?.() !== 0)("an agent with Valkey", () => {
  let controller: ControllerEnd;
  let directory: string;
  let keeper: ChildProcess;
  let generation = 0n;

  beforeAll(async () => {
    controller = await startControllerEnd();
    directory = await mkdtemp(join(tmpdir(), "agent-"));
    await chmod(directory, 0o755);
    for (const name of ["state", "data"]) await mkdir(join(directory, name));
    const passwd = readFileSync(join(found?.image.root ?? "", "etc/passwd"), "utf8");
    writeFileSync(join(directory, "passwd"), `${passwd}holdfast:x:${uid}:${uid}::/tmp:/bin/sh\n`);
    const token = randomBytes(16).toString("hex");
    controller.tokens.add(token);
    const file = join(directory, "state", "enrollment.json");
    const { address, caFingerprint } = controller;
    const content = { installation_id: "test", machine_id: "m-1", controllers: [address], token };
    writeFileSync(file, JSON.stringify({ ...content, ca_fingerprint: caFingerprint }), { mode: 0o600 });
    await chown(file, uid, uid);
    keeper = start();
    await vi.waitUntil(() => controller.hellos.length === 1, { timeout: 20_000, interval: 20 });
  });
  afterAll(async () => {
    keeper?.kill("SIGKILL");
    await controller?.close();
    await vi.waitUntil(() => pidsOf("").length === 0, { timeout: 10_000 });
    await rm(directory, { recursive: true, force: true, maxRetries: 10 });
  });
  beforeEach(() => onTestFailed(() => console.log(agentLog())));

  function start(): ChildProcess {
    const root = found?.image.root;
    const data = join(directory, "data");
    const enter = [
      `mount --bind ${root}/usr /usr`,
      `mount --bind ${root}/etc /etc`,
      `mount --bind ${directory}/passwd /etc/passwd`,
      `mount -t tmpfs -o size=${diskBytes},uid=${uid},gid=${uid},mode=0700 data ${data}`,
      'exec "$0" "$@"',
    ].join(" && ");
    const keeperMain = join(import.meta.dirname, "../keeper/main.ts");
    const inside = ["sh", "-c", enter, process.execPath, keeperMain];
    return spawn("unshare", ["--mount", "--pid", "--fork", "--kill-child", "--mount-proc", ...inside], {
      env: {
        PATH: process.env["PATH"],
        HOLDFAST_MACHINE_ID: "m-1",
        HOLDFAST_MACHINE_UID: String(uid),
        HOLDFAST_STATE_DIR: join(directory, "state"),
        HOLDFAST_RUN_DIR: join(directory, "run"),
        HOLDFAST_DATA_DIR: data,
      },
      stdio: "ignore",
    });
  }

  function converge(change: MessageInitShape<typeof InstanceSpecSchema> = {}): Promise<TaskResult> {
    generation += 1n;
    const instance = create(InstanceSpecSchema, {
      serviceId: "s-1",
      nodeId: "n-1",
      engine: "valkey",
      version: "8.1",
      generation,
      term: 1n,
      running: true,
      vcpu: 1,
      memoryBytes: 1n << 30n,
      storageBytes: BigInt(diskBytes),
      allowedCidrs: ["127.0.0.0/8"],
      address: "127.0.0.1",
      port,
      users: [{ username: "app_user", role: "admin", verifier: verifierOf(password) }],
      ...change,
    });
    const input = { case: "convergeInstance" as const, value: { instance } };
    const header = { ownerId: "s-1", generation, term: 1n, lane: Lane.CONTROL, class: TaskClass.QUICK };
    return controller.perform({ ...header, input });
  }

  function seenByUsers(): Parameters<typeof valkeyClient>[0] {
    const ca = readFileSync(join(directory, "state/instance/tls/ca.crt"), "utf8");
    const instance = { spec: { address: "127.0.0.1", port } };
    return { ca, serverName: "db.local.test", instance } as Parameters<typeof valkeyClient>[0];
  }

  const enter = (): Promise<ConformanceClient> => valkeyClient(seenByUsers(), { user: "app_user", password });

  async function read(key: string): Promise<string | undefined> {
    const client = await enter();
    try {
      return await client.read(key);
    } finally {
      await client.close();
    }
  }

  const readable = (key: string) => read(key).catch((error: Error) => error.message);

  /** Processes of this machine's user that run this program. */
  function pidsOf(program: string): number[] {
    return readdirSync("/proc")
      .map(Number)
      .filter((pid) => {
        try {
          const isOurs = readFileSync(`/proc/${pid}/status`, "latin1").includes(`Uid:\t${uid}\t`);
          return isOurs && (readFileSync(`/proc/${pid}/cmdline`, "latin1").split("\0")[0] ?? "").includes(program);
        } catch {
          return false;
        }
      });
  }

  function agentLog(): string {
    const log = join(directory, "state/log");
    return readdirSync(log)
      .map((name) => readFileSync(join(log, name), "utf8"))
      .join("\n");
  }

  function statusOf(name: string): string | undefined {
    return controller.observations.at(-1)?.checks.find((check) => check.name === name)?.status;
  }

  test("goes from nothing to a value over TLS, its listener beside it", async () => {
    expect((await converge()).failure).toBeUndefined();
    const client = await enter();
    await client.write("kept", "7");
    await client.close();
    expect(await read("kept")).toBe("7");
    expect(pidsOf("haproxy").length).toBeGreaterThan(0);
  });

  test("ends open sessions that the allow-list forbids, and leaves others alone", async () => {
    const open = await enter();
    await converge({ allowedCidrs: ["127.0.0.1/32"] });
    expect(await open.read("kept")).toBe("7");
    await converge({ allowedCidrs: ["10.0.0.0/8"] });
    await open.ended;
    await expect(enter()).rejects.toThrow();
    await converge();
    expect(await read("kept")).toBe("7");
  });

  test("comes back when its listener or itself is killed, and when a restart is asked for", async () => {
    for (const program of ["haproxy", "valkey-server"]) {
      const before = pidsOf(program);
      for (const pid of before) process.kill(pid, "SIGKILL");
      const others = () => pidsOf(program).some((pid) => !before.includes(pid));
      await expect.poll(others, { timeout: 20_000 }).toBe(true);
      await expect.poll(() => readable("kept"), { timeout: 20_000 }).toBe("7");
    }
    const [before] = pidsOf("valkey-server");
    expect((await converge({ restartCount: 1n })).failure).toBeUndefined();
    expect(pidsOf("valkey-server")).not.toContain(before);
    expect(await read("kept")).toBe("7");
  });

  test("keeps what a transaction wrote over a restart", async () => {
    const { call, close } = await connectValkey(seenByUsers(), { user: "app_user", password });
    for (const words of [["MULTI"], ["SET", "one", "1"], ["SET", "two", "2"], ["EXEC"]]) await call(...words);
    await close();
    expect((await converge({ restartCount: 2n })).failure).toBeUndefined();
    expect([await read("one"), await read("two")]).toEqual(["1", "2"]);
  });

  test("tells how full its disk is, and is no dead engine for that", async () => {
    const [inside = 0] = pidsOf("valkey-server");
    const fill = join(`/proc/${inside}/root`, directory, "data/fill");
    const filled = async (share: number) => {
      writeFileSync(fill, Buffer.alloc(Math.floor(diskBytes * share)));
      // New settings make the next look due.
      await converge({ restartCount: 2n });
    };
    await filled(0.87);
    await expect.poll(() => statusOf("storage"), { timeout: 20_000 }).toBe("degraded");
    await filled(0.955);
    await expect.poll(() => statusOf("storage"), { timeout: 20_000 }).toBe("unhealthy");
    expect(controller.observations.at(-1)?.state).toBe("running");
    expect(pidsOf("valkey-server")).toContain(inside);
    rmSync(fill);
    await converge({ restartCount: 2n });
    await expect.poll(() => statusOf("storage"), { timeout: 20_000 }).toBe("healthy");
    await expect.poll(() => statusOf("liveness"), { timeout: 20_000 }).toBe("healthy");
    expect(await read("kept")).toBe("7");
  });
});

function verifierOf(secret: string): string {
  return `#${createHash("sha256").update(secret).digest("hex")}`;
}
