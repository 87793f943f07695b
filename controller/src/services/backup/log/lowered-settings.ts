import { canReplay } from "@holdfast/common/engine-catalog/plan-limits.ts";
import type { PlanSize } from "@holdfast/common/engine-catalog/engine-row.ts";
import { type CatalogData, type PlanData, planSizeOf } from "#catalog/catalog.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import type { ManagedServiceObject } from "../../service/managed-service.ts";
import type { ArchivedSettings, ArchiveObject } from "../archive/archive.ts";

type Settings = Readonly<Record<string, string>>;

/** The archive with the current settings of the engine; undefined if nothing changes. */
export function withSettings(archive: ArchiveObject, current: Settings, now: number): ArchiveObject | undefined {
  if (Object.keys(current).length === 0) return undefined;
  const { status } = archive;
  const settings = settingsAfter(status.settings, current, status.lastAutomatedAt, now);
  return settings === status.settings ? undefined : { ...archive, status: { ...status, settings } };
}

function settingsAfter(
  recorded: ArchivedSettings | undefined,
  current: Settings,
  lastBaseAt: number | null,
  now: number,
): ArchivedSettings {
  if (recorded === undefined) return { current, loweredAt: null, beforeLowering: {} };
  const isLower = (name: string) => Number(lookUp(current, name)) < Number(lookUp(recorded.current, name));
  const names = Object.keys(recorded.current);
  if (names.some(isLower)) {
    // Values from before the last base backup no longer matter.
    const isCovered = recorded.loweredAt === null || (lastBaseAt !== null && lastBaseAt > recorded.loweredAt);
    return {
      current,
      loweredAt: now,
      beforeLowering: maxima(isCovered ? {} : recorded.beforeLowering, recorded.current),
    };
  }
  const isSame =
    names.length === Object.keys(current).length &&
    names.every((name) => lookUp(current, name) === lookUp(recorded.current, name));
  return isSame ? recorded : { ...recorded, current };
}

/** The higher value of each setting. */
function maxima(a: Settings, b: Settings): Settings {
  const names = [...new Set([...Object.keys(a), ...Object.keys(b)])];
  const valueOf = (settings: Settings, name: string) => Number(lookUp(settings, name) ?? 0);
  return Object.fromEntries(names.map((name) => [name, String(Math.max(valueOf(a, name), valueOf(b, name)))]));
}

/** Warnings about restorable times whose restore needs more memory than the service's plan has. */
export function smallerPlanWarnings(
  { status: { settings, log } }: ArchiveObject,
  { spec: { databaseType, version, planName, storageSizeGb } }: ManagedServiceObject,
  catalog: CatalogData,
): string[] {
  const plan = planSizeOf(catalog, planName, storageSizeGb);
  if (settings === undefined || settings.loweredAt === null || plan === undefined) return [];
  const { beforeLowering, loweredAt } = settings;
  const isRetained = (log[0]?.fromTime ?? Number.POSITIVE_INFINITY) < loweredAt;
  if (!isRetained || canReplay(databaseType, version, plan, beforeLowering)) return [];
  const values = Object.entries(beforeLowering).map(([name, value]) => `${name} = ${value}`);
  const cause = `Log from before ${new Date(loweredAt).toISOString()} was written under ${values.join(", ")}`;
  return [
    `${cause}: its restore needs more memory than ${planName} has, so the machine gets more memory until the restore is complete. A new base backup begins soon; a restore to a time after it needs no more memory than the plan has.`,
  ];
}

/**
 * The smallest plan with enough memory for the replay of the log after a base, if the service's own has too little.
 * Undefined if its own suffices; `null` if no plan does.
 */
export function replayPlanOf(
  { settings }: ArchiveObject["status"],
  { spec: { databaseType, version, planName, storageSizeGb } }: ManagedServiceObject,
  baseStartedAt: number,
  catalog: CatalogData,
): PlanData | null | undefined {
  const own = catalog.plans.find((plan) => plan.planName === planName);
  if (settings === undefined || own === undefined) return undefined;
  const { current, loweredAt, beforeLowering } = settings;
  const isLowered = loweredAt !== null && loweredAt > baseStartedAt;
  const replayed = isLowered ? maxima(beforeLowering, current) : current;
  const suffices = (plan: PlanData) => {
    const size = planSizeOf(catalog, plan.planName, storageSizeGb);
    return size !== undefined && canReplay(databaseType, version, size, replayed);
  };
  if (suffices(own)) return undefined;
  const others = catalog.plans.filter(({ kind }) => kind === own.kind).toSorted((a, b) => a.memoryGb - b.memoryGb);
  return others.find(suffices) ?? null;
}

/**
 * True if this plan has too little memory for the settings under which the log since the last base backup was written,
 * and the settings have been lowered since. A new base backup then makes restores fit the plan again.
 */
export function needsLowerBase(
  { status: { settings, lastAutomatedAt } }: ArchiveObject,
  { spec: { databaseType, version } }: ManagedServiceObject,
  plan: PlanSize | undefined,
): boolean {
  if (settings === undefined || settings.loweredAt === null || plan === undefined) return false;
  if (lastAutomatedAt === null || lastAutomatedAt > settings.loweredAt) return false;
  const { beforeLowering, current } = settings;
  return !canReplay(databaseType, version, plan, beforeLowering) && canReplay(databaseType, version, plan, current);
}
