import type { EngineDeps } from "../../engine-deps.ts";
import type { UpgradeFacet } from "../../upgrade-facet.ts";
import { check } from "./check.ts";
import { forget, goBack, keptVersionOf, versionOf } from "./directories.ts";
import { finish } from "./finish.ts";
import { upgradeData } from "./run-upgrade.ts";

export function createUpgrade(deps: EngineDeps): UpgradeFacet {
  return {
    versionOf,
    keptVersionOf,
    check: (instance, _version, signal) => check(deps, instance, signal),
    upgrade: (instance, from, signal) => upgradeData(deps, instance, from, signal),
    finish: (instance, signal) => finish(deps, instance, signal),
    async goBack(instance, signal) {
      const kept = await keptVersionOf(instance);
      if (kept === undefined) throw new Error("There are no data of before to go back to.");
      await goBack(deps, instance, kept, signal);
    },
    forget: (instance, signal) => forget(deps, instance, signal),
  };
}
