import { execFile } from "node:child_process";
import { join } from "node:path";
import { UserError } from "../user-error.ts";
import { type InstalledKind, unitNames } from "./installed-paths.ts";
import {
  type InstalledDeps,
  kindsInstalled,
  prepareRelease,
  readSettings,
  untilServing,
  withCache,
  writeUnit,
} from "./installed-program.ts";
import { isControllerInstalled, startController, withControllerCache } from "./install-controller.ts";
import { addRelease, currentRelease, removeOldReleases, useRelease } from "./releases.ts";

export interface UpgradeOptions {
  /** Checkout of the release to install. */
  readonly from: string;
  /** False to upgrade without a snapshot of the control plane, such as when it does not respond. */
  readonly takesSnapshot: boolean;
}

/** Time limit for the new release to serve. */
const startLimitMs = 15 * 60_000;

/**
 * Installs the release of another checkout beside the current one, and has the supervisor hand over to it: machines
 * continue. If the new release does not serve, the former one returns. Idempotent.
 */
export async function upgrade({ from, takesSnapshot }: UpgradeOptions, deps: InstalledDeps): Promise<void> {
  const { print } = deps;
  const kinds = kindsInstalled(deps.paths);
  const [first] = kinds;
  const before = currentRelease(deps.paths);
  if ((first === undefined && !isControllerInstalled(deps.paths)) || before === undefined)
    throw new UserError("Holdfast is not installed on this machine: holdfast install");
  const paths =
    first === undefined ? withControllerCache(deps.paths) : withCache(deps.paths, readSettings(deps.paths, first));
  const inPlace = { ...deps, paths };
  print("copying the release and installing its packages");
  const id = await addRelease(paths, from, (directory) => prepareRelease(directory, paths));
  if (id === before) print(`release ${id} is already the current one`);
  else if (takesSnapshot && kinds.includes("platform")) {
    print("taking a snapshot of the control plane");
    await takeSnapshot(inPlace);
  }
  try {
    await switchTo(id, kinds, inPlace);
  } catch (error) {
    if (!(error instanceof UserError) || id === before) throw error;
    print(`${error.message}\nreturning to release ${before}`);
    await switchTo(before, kinds, inPlace);
    throw new UserError(`release ${id} does not serve, so release ${before} runs again`);
  }
  const removed = removeOldReleases(paths, [id, before]);
  print(`release ${id} runs${removed.length === 0 ? "" : `; removed ${removed.join(", ")}, which nothing uses`}`);
}

/** Has all units run a release; resolves when they serve. */
async function switchTo(id: string, kinds: readonly InstalledKind[], deps: InstalledDeps): Promise<void> {
  const { paths, systemd } = deps;
  useRelease(paths, id);
  for (const kind of kinds) writeUnit(paths, kind, readSettings(paths, kind));
  await systemd.reload();
  for (const kind of kinds) {
    const unit = unitNames[kind];
    if ((await systemd.state(unit)).mainPid === 0) await systemd.enable(unit);
    else await systemd.handOver(unit);
    await untilServing(deps, kind, id, startLimitMs);
  }
  if (isControllerInstalled(paths)) await startController(id, deps, startLimitMs);
}

function takeSnapshot({ paths, environment }: InstalledDeps): Promise<void> {
  return new Promise((resolve, reject) => {
    execFile(
      paths.launcher,
      ["admin", "backup"],
      { cwd: "/", env: { ...environment, HOLDFAST_DATA: join(paths.current, ".holdfast") }, encoding: "utf8" },
      (error, _stdout, stderr) => {
        if (error === null) resolve();
        else reject(new UserError(`no snapshot: ${stderr.trim()}\n--without-snapshot upgrades without one`));
      },
    );
  });
}
