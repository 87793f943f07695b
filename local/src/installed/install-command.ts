import { mkdirSync, rmSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { clean } from "../clean.ts";
import { removeNames } from "../dns-command.ts";
import { readFlags } from "../flags.ts";
import { hostFlagNames, readHostOptions } from "../host-options.ts";
import { flagNames, readOptions } from "../options.ts";
import { UserError } from "../user-error.ts";
import type { UpDeps } from "../with-platform.ts";
import {
  type InstalledKind,
  type InstalledPaths,
  installedPaths,
  settingsFileOf,
  unitNames,
} from "./installed-paths.ts";
import {
  dataDirectoryOf,
  type InstalledDeps,
  kindsInstalled,
  installedRelease,
  readSettings,
  untilServing,
  withCache,
  writeProgram,
} from "./installed-program.ts";
import { type Settings, variableOf } from "./settings-file.ts";
import { openSystemd, type ServiceManager } from "./systemd.ts";
import { installController, isControllerInstalled, uninstallController } from "./install-controller.ts";
import { upgrade } from "./upgrade.ts";

export const installUsage = [
  "usage: holdfast install [FLAGS]            as root: runs the platform as a service of systemd, now and at each boot",
  "       holdfast install host --join FILE [FLAGS]",
  "                                           the same for a host of another machine's installation",
  "       holdfast install controller [--join FILE]",
  "                                           the same for one of the hosts of `holdfast controllers prepare`: a member",
  "                                           of etcd, a controller and a DNS server",
  "       holdfast upgrade [CHECKOUT] [--without-snapshot]",
  "                                           as root: switches to the release of a checkout; machines continue, and",
  "                                           the former release returns if the new one does not serve",
  "       holdfast uninstall [--remove-data]  as root: stops everything and removes the program; the data remain",
  "",
  "FLAGS are those of `npm start -- --help` and `npm start -- host --help`. They are stored in /etc/holdfast; another",
  "`holdfast install` with other flags changes them.",
].join("\n");

/** True for the commands of runInstallCommand. */
export function isInstallCommand(word: string | undefined): boolean {
  return word === "install" || word === "upgrade" || word === "uninstall";
}

/** Runs `holdfast install`, `upgrade` or `uninstall` with its arguments. */
export async function runInstallCommand(
  [verb = "", ...rest]: readonly string[],
  deps: UpDeps,
  open: () => ServiceManager = openSystemd,
  paths: InstalledPaths = installedPaths(),
): Promise<void> {
  if (!deps.asRoot) throw new UserError(`${verb} changes this machine: run it as root`);
  const { checkout } = deps;
  if (verb === "install" && rest[0] === "controller") {
    const { join: file } = readFlags(rest.slice(1), ["join"], installUsage);
    return await installController(file === undefined ? undefined : resolve(file), installedDeps());
  }
  if (verb === "install") {
    const kind = rest[0] === "host" ? "host" : "platform";
    const settings = settingsOf(kind, kind === "host" ? rest.slice(1) : rest, checkout, installUsage);
    return await install(kind, settings, installedDeps());
  }
  if (verb === "upgrade") {
    const { values, positionals } = parsed({ "without-snapshot": { type: "boolean" } }, true);
    const [from = checkout, ...others] = positionals;
    if (others.length > 0) throw new UserError(installUsage);
    const takesSnapshot = values["without-snapshot"] !== true;
    return await upgrade({ from: resolve(from), takesSnapshot }, installedDeps());
  }
  const { values } = parsed({ "remove-data": { type: "boolean" } }, false);
  await uninstall({ removesData: values["remove-data"] === true }, installedDeps());

  function installedDeps(): InstalledDeps {
    return { ...deps, paths, systemd: open() };
  }

  function parsed(options: Record<string, { type: "boolean" }>, allowPositionals: boolean) {
    try {
      return parseArgs({ args: [...rest], options, allowPositionals });
    } catch (error) {
      throw new UserError(`${error instanceof Error ? error.message : String(error)}\n${installUsage}`);
    }
  }
}

/** Time limit of a first start, which builds a node image. */
const startLimitMs = 60 * 60_000;

/**
 * Installs the code of this checkout as a service of systemd, or changes the settings of an installed one, and resolves
 * when it serves. Idempotent: after a crash the same command continues.
 */
async function install(kind: InstalledKind, flags: Settings, deps: InstalledDeps): Promise<void> {
  const { environment, print, systemd } = deps;
  if (kind === "platform" && isControllerInstalled(deps.paths))
    throw new UserError("this machine is a host of an installation with several controllers; see holdfast uninstall");
  const cache = environment["HOLDFAST_CACHE"];
  const before = readSettings(deps.paths, kind);
  const settings = { ...before, ...(cache && { HOLDFAST_CACHE: cache }), ...flags };
  const paths = withCache(deps.paths, settings);
  const unit = unitNames[kind];
  const id = await installedRelease(paths, deps);
  mkdirSync(dataDirectoryOf(paths, kind, settings), { recursive: true, mode: 0o755 });
  const isRunning = (await systemd.state(unit)).mainPid !== 0;
  writeProgram(paths, kind, settings);
  await systemd.reload();
  await systemd.enable(unit);
  if (isRunning && JSON.stringify(settings) !== JSON.stringify(before)) await systemd.handOver(unit);
  print(`${unit} starts; its log: journalctl --follow --unit ${unit}`);
  await untilServing({ ...deps, paths }, kind, id, startLimitMs);
  print(`release ${id} runs, now and after each boot; settings: ${paths.settings}`);
}

/** Flags with paths, which are relative to the current directory. */
const pathFlags: ReadonlySet<string> = new Set(["data", "join", "incus-socket", "objects-key"]);

/** Settings of the flags of a kind. Throws a UserError for flags that its program refuses. */
function settingsOf(kind: InstalledKind, args: readonly string[], checkout: string, usage: string): Settings {
  if (kind === "host") readHostOptions(args, {}, checkout);
  else readOptions(["up", ...args], {}, checkout);
  const flags = readFlags(args, kind === "host" ? hostFlagNames : flagNames, usage);
  return Object.fromEntries(
    Object.entries(flags).flatMap(([flag, value]) =>
      value === undefined ? [] : [[variableOf(flag), pathFlags.has(flag) ? resolve(value) : value]],
    ),
  );
}

/** Stops the units with their machines, and removes everything but the data; with `removesData` the data too. */
async function uninstall({ removesData }: { removesData: boolean }, deps: InstalledDeps): Promise<void> {
  const { paths, systemd, print } = deps;
  const kinds = kindsInstalled(paths);
  const hasController = isControllerInstalled(paths);
  if (kinds.length === 0 && !hasController)
    throw new UserError("Holdfast is not installed on this machine; nothing to remove");
  if (hasController) await uninstallController({ removesData }, deps);
  for (const kind of kinds) {
    const settings = readSettings(paths, kind);
    const data = dataDirectoryOf(paths, kind, settings);
    print(`stopping ${unitNames[kind]}`);
    await systemd.disable(unitNames[kind]);
    if (removesData) await clean(data, deps, settings["HOLDFAST_INCUS_SOCKET"]);
    else {
      await removeNames(data, deps);
      print(`the data remains in ${data}; holdfast install continues with it`);
    }
    rmSync(settingsFileOf(paths, kind), { force: true });
    rmSync(join(paths.units, unitNames[kind]), { force: true });
  }
  await systemd.reload();
  rmSync(paths.launcher, { force: true });
  // Last, because this program runs from there.
  rmSync(dirname(paths.releases), { recursive: true, force: true });
  print(`removed; software that can be installed again is in ${paths.cache}`);
}
