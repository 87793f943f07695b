import { canReplay } from "@holdfast/common/engine-catalog/plan-limits.ts";
import type { PlanSize } from "@holdfast/common/engine-catalog/engine-row.ts";
import { type CatalogData, planSizeOf } from "#catalog/catalog.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import type { ManagedServiceObject } from "../../service/managed-service.ts";
import type { ArchivedSettings, ArchiveObject } from "../archive/archive.ts";

type Settings = Readonly<Record<string, string>>;

/** The archive with the settings that the engine runs with; undefined if nothing changes. */
export function withSettings(archive: ArchiveObject, current: Settings, now: number): ArchiveObject | undefined {
  if (Object.keys(current).length === 0) return undefined;
  const { status } = archive;
  const settings = settingsAfter(status.settings, current, status.lastAutomatedAt, now);
  return settings === status.settings ? undefined : { ...archive, status: { ...status, settings } };
}

function settingsAfter(
  known: ArchivedSettings | undefined,
  current: Settings,
  lastBaseAt: number | null,
  now: number,
): ArchivedSettings {
  if (known === undefined) return { current, loweredAt: null, before: {} };
  const isLower = (name: string) => Number(lookUp(current, name)) < Number(lookUp(known.current, name));
  const names = Object.keys(known.current);
  if (names.some(isLower)) {
    // Values before the last base no longer count.
    const isCovered = known.loweredAt === null || (lastBaseAt !== null && lastBaseAt > known.loweredAt);
    return { current, loweredAt: now, before: greatest(isCovered ? {} : known.before, known.current) };
  }
  const isSame =
    names.length === Object.keys(current).length &&
    names.every((name) => lookUp(current, name) === lookUp(known.current, name));
  return isSame ? known : { ...known, current };
}

function greatest(one: Settings, other: Settings): Settings {
  const names = [...new Set([...Object.keys(one), ...Object.keys(other)])];
  const valueOf = (settings: Settings, name: string) => Number(lookUp(settings, name) ?? 0);
  return Object.fromEntries(names.map((name) => [name, String(Math.max(valueOf(one, name), valueOf(other, name)))]));
}

/** Sentences about moments whose restore needs more memory than the service's plan has. */
export function smallerPlanWarnings(
  { status: { settings, log } }: ArchiveObject,
  { spec: { databaseType, version, planName, storageSizeGb } }: ManagedServiceObject,
  catalog: CatalogData,
): string[] {
  const plan = planSizeOf(catalog, planName, storageSizeGb);
  if (settings === undefined || settings.loweredAt === null || plan === undefined) return [];
  const { before, loweredAt } = settings;
  const isRetained = (log[0]?.fromTime ?? Number.POSITIVE_INFINITY) < loweredAt;
  if (!isRetained || canReplay(databaseType, version, plan, before)) return [];
  const values = Object.entries(before).map(([name, value]) => `${name} = ${value}`);
  const cause = `Log of before ${new Date(loweredAt).toISOString()} was written under ${values.join(", ")}`;
  return [
    `${cause}: a restore of it needs more memory than ${planName} has, which its machine gets until its data are there. A new base backup begins soon, and later moments need no more than the plan.`,
  ];
}

/**
 * True if the log since the last base was written under settings that this plan has too little memory for, and
 * they are lower by now: the next base needs less.
 */
export function needsLowerBase(
  { status: { settings, lastAutomatedAt } }: ArchiveObject,
  { spec: { databaseType, version } }: ManagedServiceObject,
  plan: PlanSize | undefined,
): boolean {
  if (settings === undefined || settings.loweredAt === null || plan === undefined) return false;
  if (lastAutomatedAt === null || lastAutomatedAt > settings.loweredAt) return false;
  const { before, current } = settings;
  return !canReplay(databaseType, version, plan, before) && canReplay(databaseType, version, plan, current);
}
