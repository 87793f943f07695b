import { join } from "node:path";
import { engineOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import type { RuntimePaths } from "../local/machine-runtime.ts";
import type { PreparedDiskKind } from "../local/prepared-disks.ts";

/**
 * Engines that disks are prepared for: only PostgreSQL, whose initdb takes longer than all other steps of a new
 * service. `data` is the directory of the disk that machines mount as /data.
 */
export function preparedEngines({ node, checkout }: RuntimePaths, data = "/data"): PreparedDiskKind[] {
  const facts = engineOf("postgresql");
  if (facts === undefined) return [];
  const { engine, defaultVersion: version } = facts;
  const prepare = join(checkout, "agent", "src", "engines", "prepare.ts");
  return [{ engine, version, command: [node, prepare, engine, version, data] }];
}
