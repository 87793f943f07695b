import { join } from "node:path";
import { engineCatalog } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { machineDataDirectory } from "../local/machine-paths.ts";
import type { RuntimePaths } from "../local/machine-runtime.ts";
import type { PreparedDiskKind } from "../local/prepared-disks.ts";

/** Engines that disks are prepared for. `data` is the directory of the disk that machines mount as /data. */
export function preparedEngines({ node, checkout }: RuntimePaths, data = machineDataDirectory): PreparedDiskKind[] {
  const prepare = join(checkout, "agent", "src", "engines", "prepare.ts");
  return engineCatalog
    .filter(({ hasPreparedDisks }) => hasPreparedDisks)
    .map(({ engine, defaultVersion: version }) => {
      return { engine, version, command: [node, prepare, engine, version, data] };
    });
}
