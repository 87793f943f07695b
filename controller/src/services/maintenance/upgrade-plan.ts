import { compareVersions } from "@holdfast/common/engine-catalog/compare-versions.ts";
import { engineOf, parametersOf, upgradesData } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { HoldfastError, invalid } from "@holdfast/common/errors.ts";
import { rollsImages } from "../service/trial/images-in-turn.ts";
import type { ManagedServiceObject, ReplicationMode } from "../service/managed-service.ts";
import { isStaying } from "../service/member/members.ts";
import { modeOf } from "../service/member/sync-standbys.ts";
import { isOutdated } from "../service/trial/other-image.ts";
import { imageOffer } from "./image-offer.ts";
import type { NodeImageObject } from "./node-image.ts";
import { changedTextOrder } from "./text-order.ts";
import type { MaintenanceWorld } from "./pending-update.ts";
import { obstacleOf, silenceOf } from "./update-terms.ts";

/** What the engine's agent found in the data, as it names it. */
export interface UpgradeObstacle {
  readonly code: string;
  readonly message: string;
}

/** Something to know before an upgrade, in words that a user can act on. */
export interface UpgradeFinding {
  readonly code: string;
  /** The upgrade is refused because of it. */
  readonly blocking: boolean;
  readonly message: string;
}

/** Beside those of obstacles in the data. */
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
  /** What stands against it first. */
  readonly findings: readonly UpgradeFinding[];
  /** The newest with that version that all hosts of the service have; undefined where there is none. */
  readonly image: string | undefined;
}

/**
 * Pure: throws INVALID_REQUEST for a version that the catalog has not, and NOT_POSSIBLE for a version that is not newer.
 */
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
      `The service has version ${current}. A service is not brought back to an older version: restore a backup that was taken with ${version}.`,
    );
}

/** Pure: what an upgrade to this version, which is newer, would come with. `obstacles` are those in the data. */
export function planUpgrade(
  service: ManagedServiceObject,
  version: string,
  world: MaintenanceWorld,
  obstacles: readonly UpgradeObstacle[] = [],
  acceptsTextOrder = false,
): UpgradePlan {
  const { spec } = service;
  const { image } = imageOffer({ engine: spec.databaseType, version }, "", world.images, world.hosts);
  const known = parametersOf(spec.databaseType, version);
  const unknown = Object.keys(spec.parameters).filter((name) => !known.has(name));
  // The operation that began it may have ended before the new primary answered.
  const changing = spec.succession && "Its primary is changing. Wait until the new one answers.";
  const obstacle = obstacleOf(service, world) ?? silenceOf(world) ?? changing;
  const findings: UpgradeFinding[] = [];
  const find = (code: FindingCode, message: string, blocking = false) => findings.push({ code, message, blocking });
  if (obstacle !== undefined) find("not_ready", obstacle, true);
  if (image === undefined)
    find("no_image", `No image with ${spec.databaseType} ${version} is on every host of the service.`, true);
  for (const name of unknown)
    find("parameter_unknown", `${spec.databaseType} ${version} has no ${name}. Reset it first.`, true);
  for (const { code, message } of obstacles) findings.push({ code, message, blocking: true });
  if (upgradesData(spec.databaseType)) {
    findOfData(service, image, world, acceptsTextOrder, find);
    return { findings: sorted(findings), image: image?.metadata.id };
  }
  if (rollsImages(service))
    find(
      "connections",
      "Each node restarts in its turn; the primary gives way to a replica, and clients reconnect once.",
    );
  else find("downtime", "The engine is down while its image changes: some seconds without clients.");
  const isWithoutSnapshot = world.noSnapshots !== "" && !rollsImages(service);
  if (isWithoutSnapshot) find("no_snapshot", `The data cannot be rolled back with the version: ${world.noSnapshots}`);
  // Without either there would be no way back at all.
  if (world.restorePoint === undefined) find("no_backup", notRestorable, isWithoutSnapshot);
  return { findings: sorted(findings), image: image?.metadata.id };
}

/** The log of a backup that was just taken may be on its way to the store. */
const notRestorable =
  "The service cannot be restored to any moment yet. Take a backup if it has none, and wait until its `restorable` names a range.";

const copiedAnew =
  "Replicas keep the data of before until the upgrade can no longer be rolled back, and copy the upgraded data then, one after another. Nobody can take the primary's place until the first has them.";

/** What commits do until then. */
const meanwhile: Record<ReplicationMode, string> = {
  async: "",
  sync: "Commits wait for no replica until then.",
  sync_strict: "Commits wait until then: with replication_mode sync they do not.",
};

type Find = (code: FindingCode, message: string, blocking?: boolean) => unknown;

/** The way back is the data themselves, which stay until clients are admitted; the one after that is a restore. */
function findOfData(
  service: ManagedServiceObject,
  image: NodeImageObject | undefined,
  world: MaintenanceWorld,
  acceptsTextOrder: boolean,
  find: Find,
): void {
  const { nodes } = service.spec;
  const isChanging = nodes.some((node) => !isStaying(node) || isOutdated(service.spec, node));
  if (isChanging)
    find("replicas", "A replica has yet to get its data, or goes. Wait until it follows, or remove it.", true);
  else if (nodes.length > 1) find("replicas", `${copiedAnew} ${meanwhile[modeOf(service.spec)]}`.trim());
  const from = world.images.find(({ metadata }) => metadata.id === world.image);
  const changed = image === undefined ? [] : changedTextOrder(from, image, world.instance);
  if (changed.length > 0)
    find(
      "text_order",
      `The newer image orders texts in another way, and indexes over them miss rows until they are made again: ${changed.join(", ")}. Upgrade with accept_text_order_change, then REINDEX DATABASE each, and ALTER DATABASE ... REFRESH COLLATION VERSION.`,
      !acceptsTextOrder,
    );
  if (world.restorePoint === undefined) find("no_backup", notRestorable, true);
  find(
    "downtime",
    "The engine is down while its data are copied and upgraded: half a minute and more, with the size of the data.",
  );
}

function sorted(findings: readonly UpgradeFinding[]): UpgradeFinding[] {
  return findings.toSorted((a, b) => Number(b.blocking) - Number(a.blocking));
}
