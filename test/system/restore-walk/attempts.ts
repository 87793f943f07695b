import { defaultDatabase } from "@holdfast/common/engine-catalog/default-names.ts";
import type { WalkFixture } from "./walk-fixture.ts";
import type { Action, LedgerObject, ObjectKind } from "./walk-ledger.ts";

/** A change by the API whose operation failed. */
export class ChangeFailed extends Error {
  override readonly name = "ChangeFailed";
}

/** A session that was killed, closed or rejected by a starting engine: the outcome is unknown, and no fault. */
export function isInterrupted(error: unknown): boolean {
  if (error instanceof ChangeFailed) return false;
  const code = String((error as { code?: string }).code ?? "");
  const message = error instanceof Error ? error.message : "";
  return (
    /^(08|57P|53300|25006$|ECONN|EPIPE|ETIMEDOUT)/.test(code) ||
    /terminated|timeout|closed|ended|not queryable/i.test(message)
  );
}

/** Resolves with "done" when it was acknowledged, and with the reason when the outcome is unknown. */
export async function attempt(action: Action, act: () => Promise<unknown>): Promise<string> {
  try {
    await act();
    action.acknowledgedAt = Date.now();
    return "done";
  } catch (error) {
    if (isInterrupted(error)) return `interrupted: ${(error as Error).message}`;
    throw error;
  }
}

export function createObject(
  { ledger }: WalkFixture,
  object: Pick<LedgerObject, "kind" | "name"> & Partial<LedgerObject>,
  act: () => Promise<unknown>,
): Promise<string> {
  const created: Action = { startedAt: Date.now() };
  ledger.objects.push({ values: [], ...object, created });
  return attempt(created, act);
}

export function findObject({ ledger }: WalkFixture, kind: ObjectKind, name: string, database?: string): LedgerObject {
  const found = ledger.objects.find(
    (each) => each.kind === kind && each.name === name && each.database === database && each.dropped === undefined,
  );
  if (found === undefined) throw new Error(`the ledger has no ${kind} ${name}`);
  return found;
}

/** An object that may not have been created cannot be dropped. */
export async function dropObject(
  fixture: WalkFixture,
  of: { readonly kind: ObjectKind; readonly name: string; readonly database?: string },
  act: () => Promise<unknown>,
): Promise<string> {
  if (!isCreated(fixture, of.kind, of.name, of.database)) return "skipped: it may not be there";
  const object = findObject(fixture, of.kind, of.name, of.database);
  object.dropped = { startedAt: Date.now() };
  return attempt(object.dropped, act);
}

export function isCreated({ ledger }: WalkFixture, kind: ObjectKind, name: string, database?: string): boolean {
  return ledger.objects.some(
    (each) =>
      each.kind === kind &&
      each.name === name &&
      each.database === database &&
      each.created.acknowledgedAt !== undefined &&
      each.dropped === undefined,
  );
}

/** Skips work in a database that may not exist. */
export function ifDatabaseExists<S extends { readonly database: string }>(
  take: (fixture: WalkFixture, step: S) => Promise<string>,
): (fixture: WalkFixture, step: S) => Promise<string> {
  return async (fixture, step) =>
    step.database === defaultDatabase || isCreated(fixture, "database", step.database)
      ? take(fixture, step)
      : "skipped: its database may not be there";
}
