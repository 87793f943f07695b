import { defaultDatabase } from "@holdfast/common/engine-catalog/default-names.ts";
import type { WalkGround } from "./walk-ground.ts";
import type { Deed, LedgerObject, ObjectKind } from "./walk-ledger.ts";

/** A change by the API whose operation failed. */
export class ChangeFailed extends Error {
  override readonly name = "ChangeFailed";
}

/** A session that was killed, cut or refused by an engine that starts: the outcome is unknown, and no fault. */
export function isInterrupted(error: unknown): boolean {
  if (error instanceof ChangeFailed) return false;
  const code = String((error as { code?: string }).code ?? "");
  const message = error instanceof Error ? error.message : "";
  return (
    /^(08|57P|53300|25006$|ECONN|EPIPE|ETIMEDOUT)/.test(code) ||
    /terminated|timeout|closed|ended|not queryable/i.test(message)
  );
}

/** Resolves with "done" when it was acknowledged, and with the reason when nobody knows. */
export async function attempt(deed: Deed, act: () => Promise<unknown>): Promise<string> {
  try {
    await act();
    deed.acknowledgedAt = Date.now();
    return "done";
  } catch (error) {
    if (isInterrupted(error)) return `interrupted: ${(error as Error).message}`;
    throw error;
  }
}

export function make(
  { ledger }: WalkGround,
  object: Pick<LedgerObject, "kind" | "name"> & Partial<LedgerObject>,
  act: () => Promise<unknown>,
): Promise<string> {
  const made: Deed = { begunAt: Date.now() };
  ledger.objects.push({ values: [], ...object, made });
  return attempt(made, act);
}

export function find({ ledger }: WalkGround, kind: ObjectKind, name: string, database?: string): LedgerObject {
  const found = ledger.objects.find(
    (each) => each.kind === kind && each.name === name && each.database === database && each.dropped === undefined,
  );
  if (found === undefined) throw new Error(`the ledger has no ${kind} ${name}`);
  return found;
}

/** What may not have been made cannot be dropped. */
export async function drop(
  ground: WalkGround,
  of: { readonly kind: ObjectKind; readonly name: string; readonly database?: string },
  act: () => Promise<unknown>,
): Promise<string> {
  if (!isMade(ground, of.kind, of.name, of.database)) return "skipped: it may not be there";
  const object = find(ground, of.kind, of.name, of.database);
  object.dropped = { begunAt: Date.now() };
  return attempt(object.dropped, act);
}

export function isMade({ ledger }: WalkGround, kind: ObjectKind, name: string, database?: string): boolean {
  return ledger.objects.some(
    (each) =>
      each.kind === kind &&
      each.name === name &&
      each.database === database &&
      each.made.acknowledgedAt !== undefined &&
      each.dropped === undefined,
  );
}

/** Skips what would be done in a database of which nobody knows whether it is there. */
export function inside<S extends { readonly database: string }>(
  take: (ground: WalkGround, step: S) => Promise<string>,
): (ground: WalkGround, step: S) => Promise<string> {
  return async (ground, step) =>
    step.database === defaultDatabase || isMade(ground, "database", step.database)
      ? take(ground, step)
      : "skipped: its database may not be there";
}
