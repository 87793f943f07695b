import { compareVersions } from "@holdfast/common/engine-catalog/compare-versions.ts";
import { engineOf, parametersOf, upgradesData } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { HoldfastError, invalid } from "@holdfast/common/errors.ts";
import { canRollImages } from "../service/canary/image-rollout.ts";
import type { ManagedServiceObject, ReplicationMode } from "../service/managed-service.ts";
import { isEstablished } from "../service/member/members.ts";
import { replicationModeOf } from "../service/member/primary-replicas/replication/sync-standbys.ts";
import { hasOutdatedData } from "../service/canary/node-image.ts";
import { imageOffer } from "./image-offer.ts";
import type { NodeImageObject } from "./node-image.ts";
import { changedTextOrder } from "./image-update.ts";
import type { MaintenanceContext } from "./pending-update.ts";
import { obstacleOf, unreachableHostOf } from "./update-schedule.ts";

/** An obstacle that the agent found in the data, with the agent's code. */
export interface UpgradeObstacle {
  readonly code: string;
  readonly message: string;
}

/** A fact that a user should know before an upgrade, with advice. */
export interface UpgradeFinding {
  readonly code: string;
  /** True if the upgrade is refused because of it. */
  readonly blocking: boolean;
  readonly message: string;
}

/** Codes of findings other than obstacles in the data. */
type FindingCode =
  | "not_ready"
  | "replicas"
  | "text_order"
  | "no_image"
  | "parameter_unknown"
  | "no_snapshot"
  | "no_backup"
  | "downtime"
  | "connections";

export interface UpgradePlan {
  /** Blocking findings first. */
  readonly findings: readonly UpgradeFinding[];
  /** The newest image with that version on all hosts of the service; undefined if there is none. */
  readonly image: string | undefined;
}

/** Throws INVALID_REQUEST for a version that the catalog lacks, and NOT_POSSIBLE for one that is not newer. */
export function requireNewer({ spec }: ManagedServiceObject, version: string): void {
  const { databaseType, version: current } = spec;
  const { versions = [] } = engineOf(databaseType) ?? {};
  if (!versions.includes(version))
    throw invalid({ field: "version", code: "unknown", detail: `must be one of ${versions.join(", ")}` });
  const order = compareVersions(version, current);
  if (order === 0) throw new HoldfastError("NOT_POSSIBLE", `The service has version ${current} already.`);
  if (order < 0)
    throw new HoldfastError(
      "NOT_POSSIBLE",
      `The service has version ${current}. A service cannot return to an older version: restore a backup that was taken with ${version}.`,
    );
}

/**
 * The findings and image of an upgrade to a newer version. `obstacles`: the obstacles that the agent found in the data.
 */
export function planVersionUpgrade(
  service: ManagedServiceObject,
  version: string,
  context: MaintenanceContext,
  obstacles: readonly UpgradeObstacle[] = [],
  acceptsTextOrder = false,
): UpgradePlan {
  const { spec } = service;
  const { image } = imageOffer({ engine: spec.databaseType, version }, "", context.images, context.hosts);
  const supported = parametersOf(spec.databaseType, version);
  const unknown = Object.keys(spec.parameters).filter((name) => !supported.has(name));
  // A primary change may outlast the operation that started it.
  const changing = spec.primaryChange && "The service's primary is changing. Wait until the change is complete.";
  const obstacle = obstacleOf(service, context) ?? unreachableHostOf(context) ?? changing;
  const findings: UpgradeFinding[] = [];
  const report = (code: FindingCode, message: string, blocking = false) => findings.push({ code, message, blocking });
  if (obstacle !== undefined) report("not_ready", obstacle, true);
  if (image === undefined)
    report("no_image", `No image with ${spec.databaseType} ${version} is on every host of the service.`, true);
  for (const name of unknown)
    report("parameter_unknown", `${spec.databaseType} ${version} has no ${name}. Reset it first.`, true);
  for (const { code, message } of obstacles) findings.push({ code, message, blocking: true });
  if (upgradesData(spec.databaseType)) {
    reportDataFindings(service, image, context, acceptsTextOrder, report);
    return { findings: sorted(findings), image: image?.metadata.id };
  }
  if (canRollImages(service))
    report(
      "connections",
      "Nodes restart one after another; a replica becomes the primary, and clients reconnect once.",
    );
  else report("downtime", "The engine is down while its image changes: some seconds without clients.");
  const isWithoutSnapshot = context.snapshotProblem !== "" && !canRollImages(service);
  if (isWithoutSnapshot)
    report("no_snapshot", `The data cannot be rolled back together with the version: ${context.snapshotProblem}`);
  // Without both a snapshot and a backup the data cannot be rolled back at all.
  if (context.restorePoint === undefined) report("no_backup", notRestorable, isWithoutSnapshot);
  return { findings: sorted(findings), image: image?.metadata.id };
}

/** Advice for a service that cannot be restored yet: the log of a recent backup may not be stored. */
const notRestorable =
  "The service cannot be restored yet. Take a backup if it has none, and wait until its `restorable` has a range.";

const replicaCopyNote =
  "Replicas keep the old data until the upgrade can no longer be rolled back, and then copy the upgraded data, one after another. There is no failover until the first replica has copied them.";

/** Effect on commits until the first replica has copied the data. */
const commitNotes: Record<ReplicationMode, string> = {
  async: "",
  sync: "Until then commits do not wait for a replica.",
  sync_strict: "Until then commits wait; set replication_mode to sync to avoid that.",
};

type Report = (code: FindingCode, message: string, blocking?: boolean) => unknown;

/**
 * Findings about the data: until clients are admitted an upgrade is rolled back with them, afterwards only by a
 * restore.
 */
function reportDataFindings(
  service: ManagedServiceObject,
  image: NodeImageObject | undefined,
  context: MaintenanceContext,
  acceptsTextOrder: boolean,
  report: Report,
): void {
  const { nodes } = service.spec;
  const isChanging = nodes.some((node) => !isEstablished(node) || hasOutdatedData(service.spec, node));
  if (isChanging)
    report("replicas", "A replica is being created or removed. Wait until it follows, or remove it.", true);
  else if (nodes.length > 1)
    report("replicas", `${replicaCopyNote} ${commitNotes[replicationModeOf(service.spec)]}`.trim());
  const from = context.images.find(({ metadata }) => metadata.id === context.image);
  const changed = image === undefined ? [] : changedTextOrder(from, image, context.instance);
  if (changed.length > 0)
    report(
      "text_order",
      `The newer image sorts text differently, and indexes on text miss rows until they are rebuilt: ${changed.join(", ")}. Upgrade with accept_text_order_change, then REINDEX DATABASE each, and ALTER DATABASE ... REFRESH COLLATION VERSION.`,
      !acceptsTextOrder,
    );
  if (context.restorePoint === undefined) report("no_backup", notRestorable, true);
  report(
    "downtime",
    "The engine is down while its data are copied and upgraded: half a minute or more, depending on the size of the data.",
  );
}

function sorted(findings: readonly UpgradeFinding[]): UpgradeFinding[] {
  return findings.toSorted((a, b) => Number(b.blocking) - Number(a.blocking));
}
