import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { cacheDirectory } from "@holdfast/image/node-image.ts";
import { ControlService } from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { withGrpc } from "@holdfast/testing/api/grpc-calls.ts";
import { basic } from "@holdfast/testing/api/rest.ts";
import { hasSystemd, startSystemdMachine, type SystemdMachine } from "@holdfast/testing/machines/systemd-machine.ts";
import { type BridgedNetwork, makeBridgedNetwork } from "@holdfast/testing/network/bridged-network.ts";
import { startControllersHistory } from "@holdfast/testing/platform/controllers-history.ts";
import { guardDirectory } from "@holdfast/testing/platform/directory-guard.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

const checkout = join(import.meta.dirname, "..", "..");
const program = join(checkout, "bin", "holdfast.js");
const run = promisify(execFile);
const units = ["etcd", "controller", "dns"] as const;

describe.skipIf(!hasSystemd)("controllers that are installed on three hosts", { timeout: 600_000 }, () => {
  let directory: string;
  let guard: ReturnType<typeof guardDirectory>;
  let network: BridgedNetwork;
  let prepared: string;
  const machines = new Map<number, SystemdMachine>();
  let packageStore: string;

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), "holdfast-installed-"));
    guard = guardDirectory(directory);
    prepared = join(directory, "prepared");
    const modules = readFileSync(join(checkout, "node_modules", ".modules.yaml"), "utf8");
    packageStore = dirname(/"?storeDir"?: "?([^",\n]+)/.exec(modules)?.[1] ?? "");
    network = await makeBridgedNetwork(3);
    for (const at of network.hosts.keys()) machines.set(at, await startMachine(at));
  }, 120_000);
  afterAll(async () => {
    for (const machine of machines.values()) await machine.remove();
    await guard?.end();
    await network?.close();
  }, 300_000);

  const addresses = () => network.hosts.map(({ address }) => address);
  const addressOf = (at: number) => addresses()[at] ?? "";
  const rootOf = (at: number) => join(directory, `host-${at + 1}`);
  function startMachine(at: number): Promise<SystemdMachine> {
    mkdirSync(rootOf(at), { recursive: true });
    const environment = {
      HOLDFAST_CACHE: cacheDirectory(process.env),
      // The machine reaches no registry, and by default pnpm has a store in each file system.
      pnpm_config_store_dir: packageStore,
    };
    return startSystemdMachine(rootOf(at), environment, network.hosts[at]?.enter);
  }
  /** Gives a host the release of another one by hard links: installing the packages takes most of a test's time. */
  async function copyRelease(from: number, to: number): Promise<void> {
    await run("cp", [
      "--archive",
      "--link",
      `${join(rootOf(from), "opt", "holdfast")}/.`,
      join(rootOf(to), "opt", "holdfast"),
    ]);
  }
  function machineOf(at: number): SystemdMachine {
    const machine = machines.get(at);
    if (machine === undefined) throw new Error(`there is no host ${at + 1}`);
    return machine;
  }
  /** A command on the operator's computer. */
  const operator = async (...args: readonly string[]) => {
    const { stdout, stderr } = await run(process.execPath, [program, ...args], { cwd: directory });
    return `${stdout}${stderr}`;
  };
  const prepare = () => {
    const objects = ["--objects", "s3://backups/holdfast?endpoint=https://s3.example.com", "--objects-key", "s3.json"];
    const flags = ["--domain", "svc.example.com", "--history", network.own, ...objects];
    return operator("controllers", "prepare", "prepared", ...flags, ...addresses());
  };
  const joinFile = (at: number) => join(prepared, `${addressOf(at)}.join.json`);
  const install = (at: number) =>
    machineOf(at).run(process.execPath, program, "install", "controller", "--join", joinFile(at));
  const stored = (name: string) => readFileSync(join(prepared, "shared", name), "utf8");
  const pidsOf = async (at: number) => {
    const names = units.map((unit) => `holdfast-${unit}.service`);
    const text = await machineOf(at).run("systemctl", "show", "--property=MainPID", "--value", ...names);
    return text.trim().split(/\s+/);
  };
  /** The running controllers with shards, as the controller of a host lists them. */
  const owners = async (at: number) => {
    const { username, password } = JSON.parse(stored("bootstrap.json")) as Record<"username" | "password", string>;
    const ca = readFileSync(join(rootOf(at), "state", "controller", "ca.pem"), "utf8");
    const operatorOf = { url: `https://${addressOf(at)}:8443`, ca, authorization: basic(username, password) };
    const { controllers } = await withGrpc(operatorOf, ControlService, (rpcs) => rpcs.listControllers({}));
    return controllers
      .filter(({ shards }) => shards > 0)
      .map(({ id }) => id)
      .toSorted();
  };
  const all = ["controller-1", "controller-2", "controller-3"];
  const allOwn = (at: number) =>
    waitUntil("all controllers own shards", async () => (await owners(at)).join() === all.join());

  it("are prepared, and retain their secrets when they are prepared again", async () => {
    writeFileSync(join(directory, "s3.json"), JSON.stringify({ id: "test", secret: "test" }));
    await prepare();
    const secrets = ["bootstrap.json", "master-key.json", "history-password", "installation-id", "ca.key"];
    const before = secrets.map(stored);
    const first = readFileSync(joinFile(0), "utf8");
    await operator("controllers", "prepare", "prepared");
    expect(secrets.map(stored)).toEqual(before);
    expect(readFileSync(joinFile(0), "utf8")).not.toBe(first);
    for (const at of network.hosts.keys()) expect(statSync(joinFile(at)).mode & 0o777).toBe(0o600);
    await startControllersHistory(directory, prepared, network.own);
  });

  it("wait for a majority, and continue after an installation that was killed", async () => {
    await expect(
      machineOf(0).run(process.execPath, program, "install", "controller", "--join", joinFile(1)),
    ).rejects.toThrow(`is for ${addressOf(1)}, which is not an address of this machine`);
    const output = join(directory, "install.log");
    const script = `exec "$@" >${output} 2>&1`;
    const command = [process.execPath, program, "install", "controller", "--join", joinFile(0)];
    const killed = machineOf(0).run("sh", "-c", script, "sh", ...command);
    const ended = expect(killed).rejects.toThrow();
    const missing = `2 of 3 hosts have not started yet (${addressOf(1)}, ${addressOf(2)})`;
    await waitUntil("it waits for the others", () => readFileSync(output, "utf8").includes(missing), {
      withinMs: 300_000,
      describe: () => readFileSync(output, "utf8"),
    });
    await machineOf(0).run("pkill", "-KILL", "--full", "main.ts install controller");
    await ended;
    for (const at of [1, 2]) await copyRelease(0, at);
    for (const printed of await Promise.all([install(0), install(1), install(2)]))
      expect(printed).toMatch(/the controller of \S+ runs, now and after/);
    for (const at of network.hosts.keys()) await allOwn(at);
    for (const unit of units)
      expect((await machineOf(0).run("systemctl", "is-enabled", `holdfast-${unit}.service`)).trim()).toBe("enabled");
    const modes = await machineOf(0).run("stat", "--format=%a %n", "/etc/holdfast", "/etc/holdfast/keys/join.json");
    expect(modes).toBe("755 /etc/holdfast\n600 /etc/holdfast/keys/join.json\n");
  });

  it("restart nothing when they are installed again, and renewed certificates restart what has them", async () => {
    const before = await pidsOf(0);
    await install(0);
    expect(await pidsOf(0)).toEqual(before);
    await operator("controllers", "prepare", "prepared");
    await install(0);
    const [etcd, controller, dns] = await pidsOf(0);
    expect(etcd).not.toBe(before[0]);
    expect(controller).not.toBe(before[1]);
    expect(dns).toBe(before[2]);
    await allOwn(1);
  });

  it("replace a host that was lost", async () => {
    await expect(operator("controllers", "replace", "prepared", addressOf(2), "--yes")).rejects.toThrow(
      `etcd of ${addressOf(2)} runs`,
    );
    await machineOf(2).remove();
    machines.delete(2);
    rmSync(rootOf(2), { recursive: true, force: true });
    const printed = await operator("controllers", "replace", "prepared", addressOf(2), "--yes");
    expect(printed).toContain("has a new member");
    // The call continues after a lost response.
    await operator("controllers", "replace", "prepared", addressOf(2), "--yes");
    machines.set(2, await startMachine(2));
    await copyRelease(0, 2);
    await install(2);
    await allOwn(2);
  });

  it("are removed by uninstall", async () => {
    const removed = await machineOf(0).run("holdfast", "uninstall", "--remove-data");
    expect(removed).toContain("removed");
    await expect(machineOf(0).run("systemctl", "cat", "holdfast-etcd.service")).rejects.toThrow("No files found");
    await expect(machineOf(0).run("find", "/etc/holdfast", "-type", "f")).resolves.toBe("");
    await expect(machineOf(0).run("ls", "/var/lib/holdfast/controller")).rejects.toThrow("No such file");
    // The other two continue.
    await waitUntil("they own all shards", async () => (await owners(1)).join() === "controller-2,controller-3");
  });
});
