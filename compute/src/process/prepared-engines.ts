import { join } from "node:path";
import { engineOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import type { Inside } from "../local/place.ts";
import type { SpareKind } from "../local/spares.ts";

/**
 * Only PostgreSQL is bootstrapped ahead: the making of its data directory takes longer than all else of a new service.
 * `data` is where machines will have their /data, as a directory of the disk.
 */
export function preparedEngines({ node, checkout }: Inside, data = "/data"): SpareKind[] {
  const facts = engineOf("postgresql");
  if (facts === undefined) return [];
  const { engine, defaultVersion: version } = facts;
  const prepare = join(checkout, "agent", "src", "engines", "prepare.ts");
  return [{ engine, version, command: [node, prepare, engine, version, data] }];
}
