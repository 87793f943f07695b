import type { Engine } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { loadNormalizer, redactQuery } from "./redact-query.ts";
import { redactDigest } from "./redact-digest.ts";

/** Removes literals from the text of a statement in the engine's dialect. */
export type Redaction = (text: string) => string;

/** Engines that have query statistics. */
const redactions: Readonly<Partial<Record<Engine, Redaction>>> = { mysql: redactDigest, postgresql: redactQuery };

/** Loads the redaction of an engine's statements. Throws for an engine without one: no text may pass unread. */
export async function loadRedaction(engine: string): Promise<Redaction> {
  const redaction = Object.hasOwn(redactions, engine) ? redactions[engine as Engine] : undefined;
  if (redaction === undefined) throw new Error(`statements of ${engine} have no redaction`);
  await loadNormalizer();
  return redaction;
}
