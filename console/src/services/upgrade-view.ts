import type { Catalog, ManagedService, Upgrade } from "@holdfast/sdk/responses.ts";

/** The versions to which a service can be upgraded here, as choices, newest first. */
export function newerVersions(
  { engines }: Pick<Catalog, "engines">,
  { database_type: type, version }: Pick<ManagedService, "database_type" | "version">,
): readonly (readonly [value: string, text: string])[] {
  const engine = engines.find(({ database_type: each }) => each === type);
  return (engine?.versions ?? [])
    .filter((each) => each.available && compareVersions(each.version, version) > 0)
    .toSorted((a, b) => compareVersions(b.version, a.version))
    .map((each) => [each.version, `${engine?.title ?? type} ${each.version}`]);
}

/** Reason why a checked upgrade cannot be started; undefined if it can. */
export function upgradeRefusal({ findings }: Upgrade, acceptsTextOrder: boolean): string | undefined {
  if (findings.some(({ blocking, code }) => blocking && code !== "text_order"))
    return "Correct what prevents the upgrade first, then check it again.";
  const changesOrder = findings.some(({ code }) => code === "text_order");
  return changesOrder && !acceptsTextOrder ? "Accept the change of the order of texts first." : undefined;
}

/** Less than 0 if version `a` is older than `b`, such as "9.6" than "17". */
function compareVersions(a: string, b: string): number {
  return a.localeCompare(b, "en", { numeric: true });
}
