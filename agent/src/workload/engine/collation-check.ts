import type { EngineCheck, EngineDriver, Instance } from "../../engines/engine-driver.ts";
import type { CollationUse } from "../../engines/contents-facets.ts";

const withinMs = 5_000;
const maxNamed = 3;

/** Collation libraries of the image that the data depend on, and whether their version has changed. */
export interface CollationStatus {
  readonly check: EngineCheck;
  /** Libraries on which the data depends, sorted. */
  readonly libraries: readonly string[];
}

/**
 * Checks that the image's collation library is the version that the indexes were built with: a library that orders text
 * differently makes them silently wrong. Undefined for an engine without collation libraries, and if the engine does
 * not respond in time.
 */
export async function checkCollations(
  driver: EngineDriver,
  instance: Instance,
  signal: AbortSignal,
): Promise<CollationStatus | undefined> {
  if (driver.collations === undefined) return undefined;
  try {
    const uses = await driver.collations.uses(instance, AbortSignal.any([signal, AbortSignal.timeout(withinMs)]));
    return { check: collationCheck(uses), libraries: [...new Set(uses.map(({ library }) => library))].sort() };
  } catch {
    // Another check reports that the engine does not respond.
    return undefined;
  }
}

/** Health check of the collation libraries. */
export function collationCheck(uses: readonly CollationUse[]): EngineCheck {
  const changed = uses.filter(({ recorded, actual }) => recorded !== actual);
  if (changed.length === 0) return { name: "collation", status: "healthy", reason: "" };
  const named = changed
    .slice(0, maxNamed)
    .map(
      ({ database, collation, library, recorded, actual }) =>
        `${collation} in database ${database} (${library} ${recorded}, now ${actual || "none"})`,
    );
  const more = changed.length > maxNamed ? ` and ${changed.length - maxNamed} more` : "";
  const reason =
    `The order of text has changed with the image: ${named.join(", ")}${more}. Indexes over such text may miss rows: ` +
    "REINDEX DATABASE each, then ALTER DATABASE ... REFRESH COLLATION VERSION, or roll back to the previous image.";
  return { name: "collation", status: "degraded", reason };
}
