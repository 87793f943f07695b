import type { EngineCheck, EngineDriver, Instance } from "../engines/engine-driver.ts";
import type { CollationUse } from "../engines/contents-facets.ts";

const withinMs = 5_000;
const namedMax = 3;

/** What the data has to do with libraries of the image that order texts. */
export interface CollationLook {
  readonly check: EngineCheck;
  /** Libraries on which the data depends, in order. */
  readonly libraries: readonly string[];
}

/**
 * Does the image's library order text as the one did that the indexes were made with? A newer one that does not makes
 * them wrong without a word. Undefined where an engine depends on no library, and when it did not answer in time.
 */
export async function checkCollations(
  driver: EngineDriver,
  instance: Instance,
  signal: AbortSignal,
): Promise<CollationLook | undefined> {
  if (driver.collations === undefined) return undefined;
  try {
    const uses = await driver.collations.uses(instance, AbortSignal.any([signal, AbortSignal.timeout(withinMs)]));
    return { check: collationCheck(uses), libraries: [...new Set(uses.map(({ library }) => library))].sort() };
  } catch {
    // Whether it answers is for another check to tell.
    return undefined;
  }
}

/** Pure: the check's verdict. */
export function collationCheck(uses: readonly CollationUse[]): EngineCheck {
  const changed = uses.filter(({ recorded, actual }) => recorded !== actual);
  if (changed.length === 0) return { name: "collation", status: "healthy", reason: "" };
  const named = changed
    .slice(0, namedMax)
    .map(
      ({ database, collation, library, recorded, actual }) =>
        `${collation} in database ${database} (${library} ${recorded}, now ${actual || "none"})`,
    );
  const more = changed.length > namedMax ? ` and ${changed.length - namedMax} more` : "";
  const reason =
    `The order of text has changed with the image: ${named.join(", ")}${more}. Indexes over such text may miss rows: ` +
    "REINDEX DATABASE each, then ALTER DATABASE ... REFRESH COLLATION VERSION, or go back to the image before.";
  return { name: "collation", status: "degraded", reason };
}
