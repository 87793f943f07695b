import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { PassThrough } from "node:stream";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { blackholeMetric } from "@holdfast/compute/incus/route-plan.ts";
import { createBlockClaims } from "./block-claims.ts";
import { confirmAt } from "./clean-confirmation.ts";
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
const deps = () => ({ ...hostDeps(), asRoot: false, registryDir, print: (line: string) => void printed.push(line) });
const cleaned = (of = directory) => clean(of, deps());

/** Creates files with their directories. */
function write(...paths: string[]): void {
  for (const path of paths) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, "mine");
  }
}

/** Creates the directory of an installation of the process provider that does not run. */
function create(at = directory, octets = block): void {
  registry().renew({ directory: at, block: octets });
  write(join(at, "keys", "master"), join(at, "machines", "m1", "machine.json"), join(at, "objects", "backup"));
  const installation = { id: "i", loopback_block: octets, ports: {}, provider: "process" };
  writeFileSync(join(at, "installation.json"), JSON.stringify(installation));
}

const filesBelow = (at: string) => readdirSync(at, { recursive: true }).toSorted();

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

  it("are removed from the host, and every file at its path stays", async () => {
    registry().renew({ directory, block });
    const names = ["code/my-program.py", "keys/id", "log/app.log", "machines/m1/notes", "spares/a/b/c", "run/pid"];
    write(...names.map((name) => join(directory, name)));
    const before = filesBelow(directory);
    await cleaned();
    expect(filesBelow(directory)).toEqual(before);
    expect(registry().blocksOf(directory)).toEqual([]);
    expect(printed.join()).toContain("files in the directory are unchanged");
  });

  it("include no block that another installation has claimed since", async () => {
    const other = join(base, "other");
    create(other);
    mkdirSync(registryDir, { recursive: true });
    writeFileSync(join(registryDir, `${block}.stale.json`), JSON.stringify({ directory, block, claimedAt: 0 }));
    await cleaned();
    expect(printed.at(-1)).toContain("nothing on this host belongs to it");
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
        const flags = ["clean", "--yes", "--data", directory];
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

describe("a directory that is not the data directory of an installation", () => {
  const own = ["code/my-program.py", "keys/id", "log/app.log"];

  it.each([
    ["that runs", { HOLDFAST_PROCESS_DIR: "" }],
    ["whose DNS server runs", { HOLDFAST_DNS_DIR: "dns" }],
    ["whose host runs", { HOLDFAST_HOST_STATE_DIR: "keys/host" }],
    ["whose machine runs", { MACHINE_DIR: "machines/m1" }],
    ["that prepares a disk", { MACHINE_DIR: "spares/postgresql-18/a" }],
  ])("is unchanged as the parent of an installation %s", async (_, variables) => {
    const parent = join(base, "x");
    const inst = join(parent, "deep", "inst");
    write(...own.map((name) => join(parent, name)), join(inst, "log", "etcd.log"));
    const before = filesBelow(parent);
    const environment = Object.fromEntries(Object.entries(variables).map(([name, path]) => [name, join(inst, path)]));
    const child = await running(environment);
    await expect(cleaned(parent)).rejects.toThrow(
      `${parent} is unchanged: it has data directories below it; to remove what is there: ` +
        `\`npm run clean -- --data ${inst}\``,
    );
    expect([child.exitCode, child.signalCode]).toEqual([null, null]);
    expect(filesBelow(parent)).toEqual(before);
    const ended = once(child, "exit");
    await cleaned(inst);
    expect(await ended).toEqual([null, "SIGKILL"]);
    expect(filesBelow(parent)).toEqual(before);
  });

  it("is unchanged as the parent of an installation that does not run, also by a link", async () => {
    const parent = join(base, "x");
    create(join(parent, "deep", "inst"));
    write(...own.map((name) => join(parent, name)));
    symlinkSync(parent, join(base, "link"));
    const before = filesBelow(parent);
    for (const each of [parent, join(base, "link")])
      await expect(cleaned(each)).rejects.toThrow(`npm run clean -- --data ${join(parent, "deep", "inst")}`);
    expect(filesBelow(parent)).toEqual(before);
  });

  it("is unchanged as an installation with another one below it", async () => {
    create();
    create(join(directory, "code", "inst"), "127.252");
    const before = filesBelow(directory);
    await expect(cleaned()).rejects.toThrow(`npm run clean -- --data ${join(directory, "code", "inst")}`);
    expect(filesBelow(directory)).toEqual(before);
  });

  it("is unchanged in an installation", async () => {
    create();
    const child = await running({ MACHINE_DIR: join(directory, "machines", "m1") });
    const before = filesBelow(directory);
    for (const name of ["machines", "machines/m1", "keys", "absent"])
      await expect(cleaned(join(directory, name))).rejects.toThrow(
        `it is in a data directory; to remove what is there: \`npm run clean -- --data ${directory}\``,
      );
    expect([child.exitCode, child.signalCode]).toEqual([null, null]);
    expect(filesBelow(directory)).toEqual(before);
  });

  it.each(["{", "null", "{}", '{"id":"i","loopback_block":"10.1"}'])(
    "is unchanged with %s as its installation.json",
    async (text) => {
      write(...own.map((name) => join(directory, name)));
      writeFileSync(join(directory, "installation.json"), text);
      const before = filesBelow(directory);
      await expect(cleaned()).rejects.toThrow("is not a data directory of Holdfast; it is unchanged");
      expect(filesBelow(directory)).toEqual(before);
    },
  );

  it("is unchanged as a copy of one, and so is the original", async () => {
    create();
    const copy = join(base, "copy");
    cpSync(directory, copy, { recursive: true });
    await expect(cleaned(copy)).rejects.toThrow(`is ${copy} a copy of it?`);
    expect(filesBelow(copy)).toEqual(filesBelow(directory));
    await cleaned();
    expect(existsSync(directory)).toBe(false);
  });
});

describe("the directory of an installation", () => {
  it("is removed with what the platform made in it, and without files of others", async () => {
    create();
    write(join(directory, "notes.txt"), join(directory, "mine", "file"));
    write(join(directory, "installation.json.3f2b8c1e-0000-4000-8000-0123456789ab"));
    await cleaned();
    expect(filesBelow(directory)).toEqual(["mine", "mine/file", "notes.txt"]);
    expect(printed.at(-1)).toContain("files that are not of Holdfast remain: mine, notes.txt");
  });

  it("is unchanged without the consent of the user, who is told what is lost", async () => {
    create();
    const before = filesBelow(directory);
    const questions: string[] = [];
    const refuse = async (question: string) => {
      questions.push(question);
      throw new Error("no");
    };
    await expect(clean(directory, deps(), undefined, refuse)).rejects.toThrow("no");
    expect(filesBelow(directory)).toEqual(before);
    expect(questions).toEqual([
      `Remove the installation in ${directory}? ` +
        "Lost: 1 machine with the data of services, backups, all keys, the control plane's state.",
    ]);
  });

  it("is removed by the command with --yes only, without a terminal", async () => {
    create();
    const main = join(import.meta.dirname, "main.ts");
    const command = (...flags: string[]) =>
      run(process.execPath, [main, "clean", "--data", directory, ...flags], {
        env: { PATH: process.env["PATH"], HOLDFAST_REGISTRY: registryDir },
      });
    const before = filesBelow(directory);
    const refusal = expect.stringContaining("There is no terminal to ask on; use --yes");
    await expect(command()).rejects.toMatchObject({ code: 2, stderr: refusal });
    expect(filesBelow(directory)).toEqual(before);
    await command("--yes");
    expect(existsSync(directory)).toBe(false);
  });
});

describe("the question at a terminal", () => {
  const confirmed = async (answer: string | undefined, signal = new AbortController().signal) => {
    const input = Object.assign(new PassThrough(), { isTTY: true });
    input.end(answer);
    const screen = { write: (text: string) => printed.push(text) > 0 };
    await confirmAt(input, screen, signal)("Remove it?");
  };

  it.each(["y\n", "YES\n", " yes \n"])("agrees to %j", async (answer) => {
    await confirmed(answer);
    expect(printed).toEqual(["Remove it? [y/N] "]);
  });

  it.each(["\n", "n\n", "yeah\n", undefined])("does not agree to %j", async (answer) => {
    await expect(confirmed(answer)).rejects.toThrow("nothing was changed");
  });

  it("does not agree to Ctrl-C", async () => {
    await expect(confirmed("y\n", AbortSignal.abort())).rejects.toThrow("nothing was changed");
  });
});
