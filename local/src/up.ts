import { join } from "node:path";
import { requireSameStore, takeFiles } from "./chosen-objects.ts";
import { layoutOf } from "./layout.ts";
import type { Options } from "./options.ts";
import { baseUrlOf } from "./platform-children.ts";
import { type UpDeps, withPlatform } from "./with-platform.ts";
import { withSigns } from "./signs-of-life.ts";
import { serviceRoute } from "./service-route.ts";
import { welcome } from "./welcome.ts";

/** Runs the platform until the signal fires, and then stops it in order. */
export async function up(options: Options, deps: UpDeps, signal: AbortSignal): Promise<void> {
  const { checkout, say } = deps;
  const { objects, objectsKey, dataDir } = options;
  if (objects !== undefined) requireSameStore(layoutOf(dataDir), objects);
  takeFiles(layoutOf(dataDir), { objectsKey });
  await withPlatform(options, deps, signal, async (platform, { layout, installation, machineHost, reach }) => {
    try {
      await withSigns(say, async (begin) => {
        begin("starting");
        await platform.start(signal);
      });
      const isDefault = options.dataDir === join(checkout, ".holdfast");
      const { network } = machineHost;
      const fromElsewhere = network === undefined || reach === undefined ? [] : serviceRoute(network, reach.listen);
      say(welcome(baseUrlOf(installation), layout, isDefault, fromElsewhere));
      await aborted(signal);
    } finally {
      say("stopping");
      await platform.stop();
      say("stopped; `npm start` goes on where it was");
    }
  });
}

/** Resolves when the signal fires. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
