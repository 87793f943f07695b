import { execFile } from "node:child_process";
import { existsSync, mkdirSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { readText, replaceFileSync } from "../files.ts";
import { layoutOf } from "../layout.ts";
import { servingCode } from "../serving-record.ts";
import { UserError } from "../user-error.ts";
import type { UpDeps } from "../with-platform.ts";
import {
  type InstalledKind,
  installedKinds,
  type InstalledPaths,
  settingsFileOf,
  unitNames,
} from "./installed-paths.ts";
import { addRelease, currentRelease, replaceLink, useRelease } from "./releases.ts";
import { parseSettings, type Settings, settingsText } from "./settings-file.ts";
import type { ServiceManager } from "./systemd.ts";

/** Dependencies of the commands install, upgrade and uninstall. */
export interface InstalledDeps extends UpDeps {
  readonly paths: InstalledPaths;
  readonly systemd: ServiceManager;
}

/** Number of automatic restarts after which a start counts as failed. */
export const restartsMax = 3;
const pollMs = 200;

/** Kinds whose unit exists. */
export function kindsInstalled(paths: InstalledPaths): InstalledKind[] {
  return installedKinds.filter((kind) => existsSync(join(paths.units, unitNames[kind])));
}

/** Settings of a kind; empty if it is not installed. */
export function readSettings(paths: InstalledPaths, kind: InstalledKind): Settings {
  const file = settingsFileOf(paths, kind);
  try {
    return parseSettings(readText(file) ?? "");
  } catch (error) {
    throw error instanceof UserError ? new UserError(`${file}: ${error.message}`) : error;
  }
}

/** Paths with the cache that the settings name. */
export function withCache(paths: InstalledPaths, { HOLDFAST_CACHE: cache }: Settings): InstalledPaths {
  return { ...paths, cache: cache ?? paths.cache };
}

export function dataDirectoryOf(paths: InstalledPaths, kind: InstalledKind, { HOLDFAST_DATA: data }: Settings): string {
  return data ?? paths.data[kind];
}

/** Id of the release that runs; adds that of the checkout if none is installed. */
export async function installedRelease(paths: InstalledPaths, { checkout, print }: UpDeps): Promise<string> {
  const current = currentRelease(paths);
  if (current !== undefined && existsSync(join(paths.releases, current))) return current;
  print("copying the release and installing its packages");
  const id = await addRelease(paths, checkout, (directory) => prepareRelease(directory, paths));
  useRelease(paths, id);
  return id;
}

/** Writes the command `holdfast`. */
export function writeLauncher(paths: InstalledPaths): void {
  mkdirSync(dirname(paths.launcher), { recursive: true, mode: 0o755 });
  replaceFileSync(paths.launcher, launcherText(paths), 0o755);
}

/** Writes settings, unit and launcher of a kind. */
export function writeProgram(paths: InstalledPaths, kind: InstalledKind, settings: Settings): void {
  mkdirSync(paths.settings, { recursive: true, mode: 0o755 });
  mkdirSync(paths.units, { recursive: true, mode: 0o755 });
  replaceFileSync(settingsFileOf(paths, kind), settingsText(settings), 0o600);
  writeUnit(paths, kind, settings);
  if (kind === "platform") replaceLink(paths.dataLink, dataDirectoryOf(paths, kind, settings));
  writeLauncher(withCache(paths, settings));
}

/** Writes the unit of a kind; its settings remain as the operator wrote them. */
export function writeUnit(paths: InstalledPaths, kind: InstalledKind, settings: Settings): void {
  const text = unitText(kind, withCache(paths, settings), dataDirectoryOf(paths, kind, settings));
  replaceFileSync(join(paths.units, unitNames[kind]), text, 0o644);
}

/** Installs the packages and Node of a release, and links its default data directory. */
export async function prepareRelease(directory: string, { cache, dataLink }: InstalledPaths): Promise<void> {
  mkdirSync(cache, { recursive: true, mode: 0o755 });
  const script = `import("./bin/set-up.js").then((each) => each.setUp()).then(({ node }) => console.log(node))`;
  const node = await new Promise<string>((resolve, reject) => {
    execFile(
      process.execPath,
      ["--eval", script],
      { cwd: directory, env: { ...process.env, HOLDFAST_CACHE: cache }, encoding: "utf8" },
      (error, stdout, stderr) => {
        if (error === null) resolve(stdout.trim());
        else reject(new UserError(`the packages of the release cannot be installed: ${stderr.trim()}`));
      },
    );
  });
  symlinkSync(node, join(directory, nodejsLink));
  symlinkSync(dataLink, join(directory, ".holdfast"));
}

/**
 * Resolves when the unit's supervisor has started everything from a release. Throws a UserError with the newest lines
 * of its log when it ends repeatedly, or has not started after the time limit.
 */
export async function untilServing(
  { paths, systemd, clock }: InstalledDeps,
  kind: InstalledKind,
  id: string,
  limitMs: number,
): Promise<void> {
  const unit = unitNames[kind];
  const { run } = layoutOf(dataDirectoryOf(paths, kind, readSettings(paths, kind)));
  const first = (await systemd.state(unit)).restarts;
  const deadline = clock.now() + limitMs;
  while (servingCode(run) !== join(paths.releases, id)) {
    const { restarts } = await systemd.state(unit);
    if (restarts - first > restartsMax || clock.now() > deadline)
      throw new UserError(`${unit} does not start:\n${(await systemd.log(unit, 15)).trim()}`);
    await clock.sleep(pollMs);
  }
}

/** Program of the release's Node below a release, a link. */
export const nodejsLink = "node";

const descriptions: Readonly<Record<InstalledKind, string>> = {
  platform: "Holdfast, managed databases of this machine",
  host: "Holdfast, machines of another machine's installation",
};
const commands: Readonly<Record<InstalledKind, string>> = { platform: "up", host: "host" };

/**
 * The unit of systemd that runs the supervisor, which starts every other process in order. systemd signals only the
 * supervisor: it stops the machines itself, and they outlive its crash (systemd.kill(5)). A machine that runs out of
 * memory is repaired by its keeper, so it must not stop the unit (OOMPolicy).
 */
export function unitText(kind: InstalledKind, paths: InstalledPaths, dataDir: string): string {
  return `# Written by \`holdfast install\`, and again by each \`holdfast upgrade\`. Settings: ${settingsFileOf(paths, kind)}
[Unit]
Description=${descriptions[kind]}
Documentation=file://${paths.current}/docs/operate/install.md
Wants=network-online.target
After=network-online.target time-sync.target
RequiresMountsFor=${dataDir} ${paths.cache}
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart=${paths.current}/${nodejsLink} ${paths.current}/local/src/main.ts ${commands[kind]}
Environment=HOLDFAST_CACHE=${paths.cache} HOLDFAST_DATA=${dataDir} HOLDFAST_PROGRAM=holdfast
EnvironmentFile=-${settingsFileOf(paths, kind)}
Restart=always
RestartSec=2
KillMode=process
TimeoutStopSec=180
OOMPolicy=continue
TasksMax=infinity
Slice=holdfast.slice
CPUAccounting=yes
MemoryAccounting=yes
IOAccounting=yes

[Install]
WantedBy=multi-user.target
`;
}

/** The command \`holdfast\` of this machine. */
export function launcherText({ current, cache }: InstalledPaths): string {
  return `#!/bin/sh
# Written by \`holdfast install\`.
export HOLDFAST_CACHE="\${HOLDFAST_CACHE:-${cache}}" HOLDFAST_PROGRAM=holdfast
exec ${current}/${nodejsLink} ${current}/bin/holdfast.js "$@"
`;
}
