import { rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { clean } from "../clean.ts";
import { removeNames } from "../dns-command.ts";
import { UserError } from "../user-error.ts";
import { settingsFileOf, unitNames } from "./installed-paths.ts";
import { dataDirectoryOf, type InstalledDeps, kindsInstalled, readSettings } from "./installed-program.ts";

/** Stops the units with their machines, and removes everything but the data; with `removesData` the data too. */
export async function uninstall({ removesData }: { removesData: boolean }, deps: InstalledDeps): Promise<void> {
  const { paths, systemd, print } = deps;
  const kinds = kindsInstalled(paths);
  if (kinds.length === 0) throw new UserError("Holdfast is not installed on this machine; nothing to remove");
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
