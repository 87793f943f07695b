import { existsSync, mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { readFlags } from "../flags.ts";
import { hostFlagNames, readHostOptions } from "../host-options.ts";
import { flagNames, readOptions } from "../options.ts";
import { type InstalledKind, unitNames } from "./installed-paths.ts";
import {
  dataDirectoryOf,
  type InstalledDeps,
  prepareRelease,
  readSettings,
  untilServing,
  withCache,
  writeProgram,
} from "./installed-program.ts";
import { addRelease, currentRelease, useRelease } from "./releases.ts";
import { type Settings, variableOf } from "./settings-file.ts";

/** Time limit of a first start, which builds a node image. */
const startLimitMs = 60 * 60_000;

/**
 * Installs the code of this checkout as a service of systemd, or changes the settings of an installed one, and resolves
 * when it serves. Idempotent: after a crash the same command continues.
 */
export async function install(kind: InstalledKind, flags: Settings, deps: InstalledDeps): Promise<void> {
  const { checkout, environment, print, systemd } = deps;
  const cache = environment["HOLDFAST_CACHE"];
  const before = readSettings(deps.paths, kind);
  const settings = { ...before, ...(cache && { HOLDFAST_CACHE: cache }), ...flags };
  const paths = withCache(deps.paths, settings);
  const unit = unitNames[kind];
  let id = currentRelease(paths);
  if (id === undefined || !existsSync(join(paths.releases, id))) {
    print("copying the release and installing its packages");
    id = await addRelease(paths, checkout, (directory) => prepareRelease(directory, paths));
    useRelease(paths, id);
  }
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
export function settingsOf(kind: InstalledKind, args: readonly string[], checkout: string, usage: string): Settings {
  if (kind === "host") readHostOptions(args, {}, checkout);
  else readOptions(["up", ...args], {}, checkout);
  const flags = readFlags(args, kind === "host" ? hostFlagNames : flagNames, usage);
  return Object.fromEntries(
    Object.entries(flags).flatMap(([flag, value]) =>
      value === undefined ? [] : [[variableOf(flag), pathFlags.has(flag) ? resolve(value) : value]],
    ),
  );
}
