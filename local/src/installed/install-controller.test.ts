import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:https";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hostDeps } from "../host-deps.ts";
import {
  apiUrlOf,
  authorityFileIn,
  controllerSettingsFile,
  type ControllerUnit,
  controllerUnits,
  etcdFilesIn,
  storeJoinFile,
} from "../controllers/controller-host.ts";
import type { ControllerJoinFile } from "../controllers/controller-join-file.ts";
import { controllerUnitNames } from "../controllers/controller-units.ts";
import { newTransportAuthority, newTransportCertificate } from "../transport-certificates.ts";
import {
  installController,
  isControllerInstalled,
  startController,
  uninstallController,
} from "./install-controller.ts";
import { type InstalledPaths, installedPaths } from "./installed-paths.ts";
import type { InstalledDeps } from "./installed-program.ts";
import type { ServiceManager } from "./systemd.ts";

/** Addresses of loopback, as if this machine were the second of three hosts. */
const block = `127.${100 + (process.pid % 100)}.7`;
const addresses = [1, 2, 3].map((number) => `${block}.${number}`);
const address = `${block}.2`;

const joinFile = (renewals: number): ControllerJoinFile => ({
  kind: "controller",
  installation_id: "first",
  address,
  addresses,
  domain: "svc.example.com",
  history: "192.0.2.9",
  objects: "s3://backups?endpoint=https://s3.example.com",
  etcd_state: "new",
  secrets: { master_keys: "master", bootstrap: "{}", history_password: "password", objects_key: "{}" },
  authority: "authority",
  etcd: { certificate: `etcd ${renewals}`, key: "key" },
  controller: { certificate: `controller ${renewals}`, key: "key" },
});

/** A certificate that a unit's program reads at its start. */
function certificateOf(unit: "etcd" | "controller", paths: InstalledPaths): string {
  return unit === "etcd" ? etcdFilesIn(paths).certificate : join(paths.settings, "pki", "tls.crt");
}

/** A systemd whose units read their files when they start, and that ends the command at one of its calls. */
function fakeSystemd(paths: InstalledPaths) {
  const running = new Map<string, string>();
  let starts = 0;
  let calls = 0;
  let failing: { readonly call: number; readonly isDone: boolean } | undefined;
  const read = (unit: string) => {
    starts += 1;
    const [name] = Object.entries(controllerUnitNames).find(([, each]) => each === unit) ?? [];
    const files = [join(paths.units, unit), controllerSettingsFile(paths, name as ControllerUnit)];
    if (name === "etcd" || name === "controller") files.push(certificateOf(name, paths));
    running.set(unit, files.map((file) => readFileSync(file, "utf8")).join());
  };
  async function called(effect: () => void): Promise<void> {
    calls += 1;
    const fails = failing?.call === calls;
    if (!fails || failing?.isDone === true) effect();
    if (fails) throw new Error("the command is killed");
  }
  const systemd: ServiceManager = {
    reload: () => called(() => undefined),
    enable: (unit) => called(() => (running.has(unit) ? undefined : read(unit))),
    restart: (unit) => called(() => read(unit)),
    disable: (unit) => called(() => void running.delete(unit)),
    handOver: () => called(() => undefined),
    async state(unit) {
      await called(() => undefined);
      return { mainPid: running.has(unit) ? 1 : 0, restarts: 0 };
    },
    log: async () => "",
  };
  return {
    systemd,
    running,
    starts: () => starts,
    calls: () => calls,
    fail(call: number, isDone: boolean) {
      [failing, calls] = [{ call, isDone }, 0];
    },
  };
}

describe.skipIf(process.getuid?.() !== 0)("a host of several controllers", () => {
  const roots: string[] = [];
  let api: Server;
  let authority: string;
  beforeAll(async () => {
    const now = Date.now();
    const issuer = await newTransportAuthority("test", now);
    const { key, certificate } = await newTransportCertificate({ name: "api", hosts: [address] }, issuer, now);
    authority = issuer.certificate;
    api = createServer({ key, cert: certificate }, (_, response) => response.end());
    const { promise, resolve } = Promise.withResolvers<void>();
    api.listen(Number(new URL(apiUrlOf(address)).port), address, resolve);
    await promise;
  });
  afterAll(() => {
    api.close();
    for (const root of roots) rmSync(root, { recursive: true });
  });

  function newHost() {
    const root = mkdtempSync(join(tmpdir(), "holdfast-host-"));
    roots.push(root);
    const paths = installedPaths(root);
    mkdirSync(dirname(authorityFileIn(paths)), { recursive: true });
    writeFileSync(authorityFileIn(paths), authority);
    const fake = fakeSystemd(paths);
    const printed: string[] = [];
    const deps: InstalledDeps = {
      ...hostDeps(),
      environment: { HOLDFAST_PROGRAMS: "source", PATH: "/usr/bin:/bin" },
      paths,
      systemd: fake.systemd,
      print: (line) => printed.push(line),
    };
    const start = async (file: ControllerJoinFile) => {
      storeJoinFile(file, paths);
      await startController("release", deps, 1_000);
    };
    return { paths, deps, fake, start };
  }

  it("starts its units, and restarts those alone whose files have changed", async () => {
    const { paths, fake, start } = newHost();
    await start(joinFile(1));
    expect([...fake.running.keys()]).toEqual(controllerUnits.map((unit) => controllerUnitNames[unit]));
    await start(joinFile(1));
    expect(fake.starts()).toBe(3);
    await start({ ...joinFile(1), etcd: { certificate: "renewed", key: "key" } });
    expect(fake.starts()).toBe(4);
    writeFileSync(join(paths.settings, "local.env"), 'HOLDFAST_RATE_READS="9"\n');
    await start({ ...joinFile(1), etcd: { certificate: "renewed", key: "key" } });
    expect(fake.starts()).toBe(7);
  });

  it("has its units run with the current files after a command that was killed at any call", async () => {
    for (const isDone of [false, true]) {
      for (let call = 1; ; call += 1) {
        const { paths, fake, start } = newHost();
        await start(joinFile(1));
        fake.fail(call, isDone);
        const isKilled = await start(joinFile(2)).then(
          () => false,
          () => true,
        );
        if (!isKilled) {
          expect(call).toBeGreaterThan(5);
          break;
        }
        await start(joinFile(2));
        for (const unit of ["etcd", "controller"] as const) {
          expect(fake.running.get(controllerUnitNames[unit])).toContain(`${unit} 2`);
          expect(readFileSync(certificateOf(unit, paths), "utf8")).toBe(`${unit} 2`);
        }
      }
    }
  });

  it("refuses the file of another host or installation, and a missing one", async () => {
    const { paths, deps } = newHost();
    const file = join(paths.settings, "..", "file.json");
    await expect(installController(undefined, deps)).rejects.toThrow("--join is missing");
    await expect(installController(file, deps)).rejects.toThrow(`--join: there is no file ${file}`);
    storeJoinFile(joinFile(1), paths);
    writeFileSync(file, JSON.stringify({ ...joinFile(1), address: "192.0.2.7", addresses: ["192.0.2.7"] }));
    await expect(installController(file, deps)).rejects.toThrow("192.0.2.7, which is not an address of this machine");
    writeFileSync(file, JSON.stringify({ ...joinFile(1), installation_id: "second" }));
    await expect(installController(file, deps)).rejects.toThrow("this machine belongs to installation first");
    writeFileSync(file, "{}");
    await expect(installController(file, deps)).rejects.toThrow(
      `--join: ${file} is not a join file: it is not the file`,
    );
  });

  it("is removed, and retains its data and secrets unless they are to be removed", async () => {
    const { paths, deps, fake, start } = newHost();
    await start(joinFile(1));
    await uninstallController({ removesData: false }, deps);
    expect(fake.running.size).toBe(0);
    expect(isControllerInstalled(paths)).toBe(false);
    expect(readFileSync(join(paths.settings, "keys", "master-key.json"), "utf8")).toBe("master");
    await start(joinFile(1));
    await uninstallController({ removesData: true }, deps);
    expect(() => readFileSync(join(paths.settings, "keys", "master-key.json"))).toThrow("ENOENT");
    expect(() => readFileSync(authorityFileIn(paths))).toThrow("ENOENT");
  });
});
