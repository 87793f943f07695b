import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { blackholeMetric } from "@holdfast/compute/incus/route-plan.ts";
import { createBlockClaims } from "./block-claims.ts";
import { clean } from "./clean.ts";
import { hostDeps } from "./host-deps.ts";

const run = promisify(execFile);
const isRoot = process.getuid?.() === 0;
const able =
  isRoot &&
  (await Promise.all([run("nft", ["--version"]), run("ip", ["-Version"])]).then(
    () => true,
    () => false,
  ));
/** Unused by installations, whose blocks begin at 77 and do not get this far. */
const block = "127.253";

let base: string;
let directory: string;
let registryDir: string;
let printed: string[];
const children: ChildProcess[] = [];
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "holdfast-clean-"));
  directory = join(base, "data");
  registryDir = join(base, "registry");
  printed = [];
});
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  rmSync(base, { recursive: true, force: true });
});

const registry = () => createBlockClaims(registryDir, Date.now);
// Without root, the network of the host is left unchanged, which this test shares.
const cleaned = () =>
  clean(directory, { ...hostDeps(), asRoot: false, registryDir, print: (line) => void printed.push(line) });

async function running(environment: Record<string, string>): Promise<ChildProcess> {
  const child = spawn("sleep", ["1000"], { env: environment, stdio: "ignore" });
  children.push(child);
  await once(child, "spawn");
  return child;
}

describe("the remains of an installation whose directory was removed by hand", () => {
  it("are ended, and other processes are not", async () => {
    registry().renew({ directory, block });
    const machine = await running({ MACHINE_DIR: join(directory, "machines", "m1") });
    const others = await Promise.all([
      running({ MACHINE_DIR: join(`${directory}-2`, "machines", "m1") }),
      running({ HOLDFAST_DATA: directory }),
    ]);
    const ended = once(machine, "exit");
    await cleaned();
    expect(await ended).toEqual([null, "SIGKILL"]);
    expect(others.map(({ exitCode, signalCode }) => exitCode ?? signalCode)).toEqual([null, null]);
    expect(registry().blocksOf(directory)).toEqual([]);
    expect(existsSync(directory)).toBe(false);
    expect(printed).toContain(`the remains of ${directory} on this host are removed`);
    await cleaned();
    expect(printed.at(-1)).toContain("nothing on this host belongs to it");
  });

  it("are removed from its directory, and other files stay", async () => {
    registry().renew({ directory, block });
    for (const name of ["machines/m1", "code/1"]) mkdirSync(join(directory, name), { recursive: true });
    writeFileSync(join(directory, "notes.txt"), "mine");
    await cleaned();
    expect(readdirSync(directory)).toEqual(["notes.txt"]);
  });

  it("do not exist in a directory that never was an installation's", async () => {
    mkdirSync(directory);
    await expect(cleaned()).rejects.toThrow("is not a data directory of Holdfast; it is unchanged");
  });

  it.skipIf(!able)(
    `are removed from the host's network${able ? "" : " (skipped: needs root, ip and nft)"}`,
    async () => {
      registry().renew({ directory, block });
      const name = `hf-clean-${process.pid}`;
      const within = async (...argv: string[]) => (await run("ip", ["netns", "exec", name, ...argv])).stdout;
      await run("ip", ["netns", "add", name]);
      try {
        for (const line of [
          "ip link set lo up",
          "ip address add 10.253.0.1/32 dev lo",
          "ip link add hf253-2 type veth peer name theirs",
          "ip link set hf253-2 up",
          "ip route add 10.253.0.2/32 dev hf253-2",
          `ip route add unreachable 10.253.0.0/16 proto 146 metric ${blackholeMetric(253)}`,
          `ip route add unreachable 10.252.0.0/16 proto 146 metric ${blackholeMetric(252)}`,
          "nft add table inet holdfast_253",
          "nft add table inet holdfast_253_paths",
          "nft add table inet holdfast_252",
        ])
          await within(...line.split(" "));
        const main = join(import.meta.dirname, "main.ts");
        const flags = ["clean", "--data", directory];
        const environment = `HOLDFAST_REGISTRY=${registryDir}`;
        await within("env", environment, process.execPath, main, ...flags);
        expect((await within("ip", "-4", "route", "show")).trim().split("\n")).toHaveLength(1);
        expect(await within("ip", "-4", "route", "show")).toContain("unreachable 10.252.0.0/16");
        expect(await within("ip", "address", "show")).not.toContain("10.253.");
        expect(await within("ip", "link", "show")).not.toContain("hf253-");
        expect((await within("nft", "list", "tables")).trim()).toBe("table inet holdfast_252");
      } finally {
        await run("ip", ["netns", "delete", name]);
      }
    },
  );
});
