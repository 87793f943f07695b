import { parametersOf, planParameters } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import type { CatalogData } from "#catalog/catalog.ts";
import { engineProfileOf } from "../../../../engine/engine-profiles.ts";
import { machineSizeOf } from "../../../../scaling/service-size.ts";
import type { ManagedServiceObject } from "../../../managed-service.ts";
import type { ObservedNode, ObservedService } from "../../../reconcile/observed-service.ts";
import { awaitsRestart } from "../../restarts.ts";
import { isPrimary } from "../primary.ts";

/**
 * Changes of standby-sensitive parameters (a replica needs at least the primary's values) by the primary's next
 * restart; empty if no restart is pending.
 */
export function standbySensitiveChangeOf(
  service: ManagedServiceObject,
  nodes: readonly ObservedNode[],
  catalog: CatalogData,
): Pick<ObservedService, "standbySensitiveChange"> {
  const { spec } = service;
  const names = engineProfileOf(spec.databaseType).replicas?.minimumFromPrimary ?? [];
  const primary = nodes.find(({ node }) => isPrimary(service, node));
  if (names.length === 0 || primary === undefined || !awaitsRestart(spec, primary.node)) return {};
  const { vcpu, memoryBytes, diskBytes: storageBytes } = machineSizeOf(spec, catalog);
  const byPlan = planParameters(spec.databaseType, { vcpu, memoryBytes, storageBytes });
  const definitions = parametersOf(spec.databaseType, spec.version);
  const changes = names.flatMap((name) => {
    const before = Number(lookUp(primary.instance?.effectiveParameters ?? {}, name));
    const after = Number(lookUp(spec.parameters, name) ?? lookUp(byPlan, name) ?? definitions.get(name)?.default);
    return Number.isFinite(before) && Number.isFinite(after) ? [after - before] : [];
  });
  return {
    standbySensitiveChange: {
      lowers: changes.some((change) => change < 0),
      raises: changes.some((change) => change > 0),
    },
  };
}
