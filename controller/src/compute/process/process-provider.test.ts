import { execFile, execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { chown, mkdtemp, readdir, readFile, readlink, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { cacheDirectory } from "@holdfast/image/node-image.ts";
import { describe, it } from "vitest";
import { startTestMachines, testCheckout } from "../../../../test/support/process-machines.ts";
import { type ConformanceSubject, computeConformance } from "../compute-conformance.ts";
import { groupsOf } from "../host/control-groups.ts";
import { detectAbilities, type HostAbilities } from "../host/host-abilities.ts";
import { type MachineRun, readRun } from "./machine-run.ts";
import { isAlive, statOf } from "../host/process-identity.ts";

const run = promisify(execFile);
const abilities = await detectAbilities();

async function open(used: HostAbilities, environment = process.env): Promise<ConformanceSubject> {
  const machines = await startTestMachines({ abilities: used, environment });
  const { directory, layout, provider } = machines;
  const looked: string[] = [];
  const runOf = async (id: string) => (await readRun(layout.machine(id).run)) as MachineRun & { init: object };

  return {
    provider,
    second: machines.another(),
    contained: used.isolation !== "none",
    async processesOf(id) {
      const { init } = await runOf(id);
      const namespace = await linkOf(init.pid, "ns/pid");
      const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number);
      const found: string[] = [];
      for (const pid of pids) {
        const mine =
          used.isolation === "none"
            ? (await linkOf(pid, "cwd"))?.startsWith(layout.machine(id).directory)
            : (await linkOf(pid, "ns/pid")) === namespace;
        if (mine) found.push(`${pid} ${statOf(pid)?.startTicks}`);
      }
      return found;
    },
    alive: (processes) =>
      processes.filter((each) => {
        const [pid = "0", startTicks = ""] = each.split(" ");
        return isAlive({ pid: Number(pid), startTicks });
      }),
    async crash(id) {
      process.kill((await runOf(id)).init.pid, "SIGKILL");
    },
    async reboot(id) {
      await provider.fence(id, new AbortController().signal);
      const self = statOf(process.pid);
      const lines = `launcher ${self?.pid} ${self?.startTicks} another-boot ${used.isolation}\ninit ${self?.pid} ${self?.startTicks}\n`;
      await writeFile(layout.machine(id).run, lines);
    },
    async dataBytes(id) {
      if (!used.loop) return undefined;
      const pid = String((await runOf(id)).init.pid);
      const { stdout } = await run("nsenter", ["-t", pid, "-m", "stat", "-f", "-c", "%b %S", "/data"]);
      const [blocks = 0, size = 0] = stdout.trim().split(" ").map(Number);
      return blocks * size;
    },
    otherImage: async () => machines.images.other(),
    sees: async (id, path) => existsSync(`/proc/${(await runOf(id)).init.pid}/root${path}`),
    async limits(id) {
      if (used.groups.version !== 1) return undefined;
      looked.push(id);
      const [cpu = "", memory = ""] = groupsOf(used.groups, id).directories;
      const count = async (path: string) => Number(await readFile(path, "utf8"));
      return {
        vcpu: (await count(join(cpu, "cpu.cfs_quota_us"))) / (await count(join(cpu, "cpu.cfs_period_us"))),
        memoryBytes: await count(join(memory, "memory.limit_in_bytes")),
      };
    },
    async enrollment(id) {
      const path = join(layout.machine(id).state, "enrollment.json");
      return { content: JSON.parse(await readFile(path, "utf8")), mode: (await stat(path)).mode };
    },
    async leftovers() {
      const left = await Promise.all([layout.machines, layout.running, layout.addresses].map((path) => readdir(path)));
      const mounts = (await readFile("/proc/mounts", "utf8")).split("\n").filter((line) => line.includes(directory));
      const loops = used.loop ? execFileSync("losetup", ["--all"]).toString().split("\n") : [];
      const groups = looked.flatMap((id) => groupsOf(used.groups, id).directories).filter(existsSync);
      return [...left.flat(), ...groups, ...mounts, ...loops.filter((line) => line.includes(directory))];
    },
    close: machines.close,
  };
}

async function linkOf(pid: number, name: string): Promise<string | undefined> {
  try {
    return await readlink(`/proc/${pid}/${name}`);
  } catch {
    // It ended, or is not ours.
    return undefined;
  }
}

computeConformance(
  `process, in namespaces (${abilities.isolation})`,
  () => open(abilities),
  abilities.isolation === "none" ? abilities.reason : undefined,
);
computeConformance(
  "process, data in directories",
  () => open({ ...abilities, loop: false }),
  abilities.loop ? undefined : "that is what ran above",
);
computeConformance("process, without namespaces", () =>
  open(
    { isolation: "none", loop: false, groups: { version: "none", reason: "" }, reason: "the test does without" },
    // The stand-in needs no engine; what counts is that the host seems to have one.
    { ...process.env, PATH: `${join(import.meta.dirname, "test-engines")}:${process.env["PATH"]}` },
  ),
);

const config = ["--configLoader", "native", "--no-cache", "--reporter", "dot"];

describe.skipIf(abilities.isolation !== "root" || process.env["HOLDFAST_AS_USER"] !== undefined)(
  "as a user who is not root",
  () => {
    it("keeps every promise", async (context) => {
      const uid = "65531";
      const vitest = join(testCheckout, "node_modules", "vitest", "vitest.mjs");
      const asUser = ["--reuid", uid, "--regid", uid, "--clear-groups"];
      try {
        await run("setpriv", [...asUser, "test", "-r", vitest, "-a", "-x", process.execPath]);
      } catch {
        context.skip("the checkout or node is in a directory that other users may not enter");
      }
      const home = await mkdtemp(join(tmpdir(), "holdfast-user-"));
      await chown(home, Number(uid), Number(uid));
      const env = {
        ...process.env,
        HOME: home,
        TMPDIR: home,
        HOLDFAST_CACHE: cacheDirectory(process.env),
        HOLDFAST_AS_USER: uid,
      };
      try {
        await run("setpriv", [...asUser, process.execPath, vitest, "run", ...config, import.meta.filename], {
          cwd: testCheckout,
          env,
        });
      } catch (error) {
        throw new Error(error instanceof Error && "stdout" in error ? String(error.stdout) : String(error));
      } finally {
        await rm(home, { recursive: true, force: true });
      }
    });
  },
);
