import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { UserError } from "../user-error.ts";
import type { UpDeps } from "../with-platform.ts";
import { install, settingsOf } from "./install.ts";
import { type InstalledPaths, installedPaths } from "./installed-paths.ts";
import type { InstalledDeps } from "./installed-program.ts";
import { openSystemd, type ServiceManager } from "./systemd.ts";
import { uninstall } from "./uninstall.ts";
import { upgrade } from "./upgrade.ts";

export const installUsage = [
  "usage: holdfast install [FLAGS]            as root: runs the platform as a service of systemd, now and at each boot",
  "       holdfast install host --join FILE [FLAGS]",
  "                                           the same for a host of another machine's installation",
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
