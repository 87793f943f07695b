import { createHash } from "node:crypto";
import { existsSync, mkdirSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { endpointOf } from "@holdfast/common/endpoint.ts";
import { imagesDirectory } from "@holdfast/image/node-image.ts";
import { isOwnAddress } from "../advertised-listener.ts";
import {
  apiUrlOf,
  authorityFileIn,
  controllerKeyFolders,
  controllerSettingsFile,
  type ControllerUnit,
  controllerUnits,
  etcdFilesIn,
  etcdUrlsOf,
  historyEndpointOf,
  ownSettingsFile,
  storedJoinFile,
  storeJoinFile,
  writeControllerHost,
} from "../controllers/controller-host.ts";
import { type ControllerJoinFile, parseControllerJoinFile } from "../controllers/controller-join-file.ts";
import { controllerUnitNames, controllerUnitText } from "../controllers/controller-units.ts";
import { readJson, readText, replaceFileSync } from "../files.ts";
import { isHealthy } from "../healthy-api.ts";
import { openPrograms } from "../programs.ts";
import { openEtcd } from "../software.ts";
import { UserError } from "../user-error.ts";
import type { InstalledPaths } from "./installed-paths.ts";
import {
  type InstalledDeps,
  installedRelease,
  kindsInstalled,
  nodejsLink,
  restartsMax,
  withCache,
  writeLauncher,
} from "./installed-program.ts";
import { parseSettings } from "./settings-file.ts";

/** Time limit of a first start, in which the other hosts are installed too. */
const firstStartLimitMs = 60 * 60_000;
const pollMs = 500;

/** True if this machine has the units of a controller's host. */
export function isControllerInstalled(paths: InstalledPaths): boolean {
  return controllerUnits.some((unit) => existsSync(unitFileOf(paths, unit)));
}

/** Paths with the cache that the settings of the controller name. */
export function withControllerCache(paths: InstalledPaths): InstalledPaths {
  return withCache(paths, parseSettings(readText(controllerSettingsFile(paths, "controller")) ?? ""));
}

/**
 * Makes this machine one of the hosts of an installation: stores the join file, writes keys, settings and units, starts
 * the units that have changed, and resolves when the controller is healthy. Without a path it applies the stored file
 * and the operator's settings again. Idempotent: after a crash the same command continues.
 */
export async function installController(path: string | undefined, deps: InstalledDeps): Promise<void> {
  const { environment, print } = deps;
  const file = path === undefined ? readStored(deps.paths) : readJoinFile(path);
  if (file === undefined) throw new UserError("--join is missing: `holdfast controllers prepare` writes the file");
  requireHost(path ?? storedJoinFile(deps.paths), file, deps.paths);
  const cache = environment["HOLDFAST_CACHE"];
  const paths = cache === undefined ? withControllerCache(deps.paths) : { ...deps.paths, cache };
  const id = await installedRelease(paths, deps);
  // The image is built now: the unit of etcd does not wait for it.
  const variables = { ...environment, HOLDFAST_CACHE: paths.cache };
  const { signal } = new AbortController();
  await openEtcd({ imagesDir: imagesDirectory(variables), environment: variables, print, signal });
  storeJoinFile(file, paths);
  writeLauncher(paths);
  await startController(id, { ...deps, paths }, firstStartLimitMs);
  print(`the controller of ${file.address} runs, now and after each boot; settings: ${paths.settings}`);
  print(`${authorityFileIn(paths)} verifies its API, ${apiUrlOf(file.address)}`);
}

/**
 * Has the units of this host run a release, restarts those whose command, settings or keys differ from those of their
 * last start, and resolves when the controller is healthy. Idempotent.
 */
export async function startController(id: string, deps: InstalledDeps, limitMs: number): Promise<void> {
  const { paths, environment, print, systemd } = deps;
  const file = readStored(paths);
  if (file === undefined) throw new UserError(`there is no file ${storedJoinFile(paths)}: give it by --join`);
  const directory = join(paths.releases, id);
  const programs = await openPrograms(directory, environment, print);
  const code = { node: join(directory, nodejsLink), directory, programs };
  writeControllerHost(file, paths);
  mkdirSync(paths.units, { recursive: true, mode: 0o755 });
  for (const unit of controllerUnits)
    replaceFileSync(unitFileOf(paths, unit), controllerUnitText(unit, code, paths), 0o644);
  await systemd.reload();
  for (const unit of controllerUnits) {
    const name = controllerUnitNames[unit];
    const digest = inputsOf(unit, paths);
    const isRunning = (await systemd.state(name)).mainPid !== 0;
    await systemd.enable(name);
    if (isRunning && startsOf(paths)[unit] !== digest) {
      print(`restarting ${name}`);
      await systemd.restart(name);
    }
    replaceFileSync(startsFile(paths), JSON.stringify({ ...startsOf(paths), [unit]: digest }), 0o600);
  }
  await untilControllerHealthy(file, deps, limitMs);
}

/** Stops the units and removes them; with `removesData` also the member's data and the secrets. */
export async function uninstallController(
  { removesData }: { readonly removesData: boolean },
  { paths, systemd, print }: InstalledDeps,
): Promise<void> {
  for (const unit of controllerUnits.toReversed()) {
    const name = controllerUnitNames[unit];
    print(`stopping ${name}`);
    if (existsSync(unitFileOf(paths, unit))) await systemd.disable(name);
  }
  for (const folder of controllerKeyFolders)
    if (removesData || folder !== "keys") rmSync(join(paths.settings, folder), { recursive: true, force: true });
  if (removesData) rmSync(paths.data.controller, { recursive: true, force: true });
  else
    print(
      `the data remains in ${paths.data.controller}, the secrets in ${join(paths.settings, "keys")}; holdfast install controller continues with them`,
    );
  // Settings and units are last: after a crash the same command finds and removes the others.
  for (const unit of controllerUnits) {
    rmSync(controllerSettingsFile(paths, unit), { force: true });
    rmSync(unitFileOf(paths, unit), { force: true });
  }
}

function unitFileOf({ units }: InstalledPaths, unit: ControllerUnit): string {
  return join(units, controllerUnitNames[unit]);
}

function readStored(paths: InstalledPaths): ControllerJoinFile | undefined {
  const path = storedJoinFile(paths);
  return existsSync(path) ? readJoinFile(path) : undefined;
}

function readJoinFile(path: string): ControllerJoinFile {
  const text = readText(path);
  if (text === undefined) throw new UserError(`--join: there is no file ${path}`);
  try {
    return parseControllerJoinFile(text);
  } catch (error) {
    throw new UserError(`--join: ${path} is not a join file: ${(error as Error).message}`);
  }
}

/** Throws a UserError if this machine is not the host of the file, or runs another installation. */
function requireHost(path: string, { address, installation_id: id }: ControllerJoinFile, paths: InstalledPaths): void {
  if (!isOwnAddress(address))
    throw new UserError(`--join: ${path} is for ${address}, which is not an address of this machine`);
  if (kindsInstalled(paths).includes("platform"))
    throw new UserError("this machine runs a platform; a controller of several hosts needs another machine");
  const existing = readStored(paths)?.installation_id;
  if (existing !== undefined && existing !== id)
    throw new UserError(
      `--join: this machine belongs to installation ${existing}, and ${path} to ${id}; to join it, first run holdfast uninstall --remove-data`,
    );
}

type Starts = Partial<Record<ControllerUnit, string>>;

/** File with a digest for each unit: command, settings and keys of its last start. */
function startsFile({ data }: InstalledPaths): string {
  return join(data.controller, "starts.json");
}

function startsOf(paths: InstalledPaths): Starts {
  return readJson<Starts>(startsFile(paths)) ?? {};
}

/** Keys and certificates that the program of a unit reads at its start. */
function keyFilesOf(unit: ControllerUnit, paths: InstalledPaths): readonly string[] {
  switch (unit) {
    case "etcd":
      return Object.values(etcdFilesIn(paths));
    case "controller":
      return [
        "pki/ca.crt",
        "pki/tls.crt",
        "pki/tls.key",
        "keys/master-key.json",
        "keys/history-password",
        "keys/objects-key.json",
      ].map((name) => join(paths.settings, name));
    case "dns":
      return [];
  }
}

function inputsOf(unit: ControllerUnit, paths: InstalledPaths): string {
  const files = [
    unitFileOf(paths, unit),
    controllerSettingsFile(paths, unit),
    ownSettingsFile(paths),
    ...keyFilesOf(unit, paths),
  ];
  const digest = createHash("sha256");
  for (const each of files) digest.update(readText(each) ?? "").update("\0");
  return digest.digest("hex");
}

/**
 * Resolves when the controller of this host is healthy, and prints what it waits for: other hosts that have not started
 * are no error. Throws a UserError with the newest lines of a unit that ends repeatedly.
 */
async function untilControllerHealthy(
  file: ControllerJoinFile,
  { paths, systemd, clock, print }: InstalledDeps,
  limitMs: number,
): Promise<void> {
  const restarts = new Map<ControllerUnit, number>();
  const deadline = clock.now() + limitMs;
  let printed = "";
  while (!(await isHealthy(apiUrlOf(file.address), authorityFileIn(paths)))) {
    for (const unit of controllerUnits) {
      const name = controllerUnitNames[unit];
      const { restarts: count } = await systemd.state(name);
      const first = restarts.get(unit) ?? count;
      restarts.set(unit, first);
      if (count - first > restartsMax || clock.now() > deadline)
        throw new UserError(`${name} does not start:\n${(await systemd.log(name, 15)).trim()}`);
    }
    const awaited = await awaitedBy(file);
    if (awaited !== printed) print(awaited);
    printed = awaited;
    await clock.sleep(pollMs);
  }
}

/** A line for the operator: the condition that the controller waits for. */
async function awaitedBy(file: ControllerJoinFile): Promise<string> {
  const { address, addresses } = file;
  const started = await Promise.all(addresses.map((each) => accepts(new URL(etcdUrlsOf(each).peer).host)));
  const missing = addresses.filter((_, at) => started[at] !== true);
  if (missing.includes(address))
    return `waiting for etcd of this host; its log: journalctl --follow --unit ${controllerUnitNames.etcd}`;
  if (missing.length * 2 >= addresses.length)
    return `waiting for etcd: ${missing.length} of ${addresses.length} hosts have not started yet (${missing.join(", ")}); run holdfast install controller there too`;
  const history = historyEndpointOf(file);
  if (!(await accepts(history))) return `waiting for the history: ${history} accepts no connections`;
  return `waiting for the controller at ${apiUrlOf(address)}; its log: journalctl --follow --unit ${controllerUnitNames.controller}`;
}

/** True if a server accepts TCP connections at host:port. */
function accepts(endpoint: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ ...endpointOf(endpoint), timeout: 1_000 });
    const end = (accepted: boolean) => {
      socket.destroy();
      resolve(accepted);
    };
    socket.once("connect", () => end(true));
    socket.once("timeout", () => end(false));
    socket.once("error", () => end(false));
  });
}
