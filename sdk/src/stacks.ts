import type { Stack, StackMigration, StackPreview } from "./answers.ts";
import { NotFound } from "./errors.ts";
import { StackMethods } from "./methods.ts";
import { type CallOptions, pathOf } from "./transport.ts";
import { type Limits, untilOver } from "./wait.ts";

/** The stack came to Failed instead. */
export class StackFailed extends Error {
  override readonly name = "StackFailed";
  readonly failed: Stack;

  constructor(failed: Stack) {
    super(failed.status_detail ?? `the stack is ${failed.status}`);
    this.failed = failed;
  }
}

/** The migration failed: the stack runs on with what was done before. */
export class MigrationFailed extends Error {
  override readonly name = "MigrationFailed";
  readonly migration: StackMigration;

  constructor(migration: StackMigration) {
    super(migration.status_detail ?? "the migration failed");
    this.migration = migration;
  }
}

/** Templates of resources, launched at a cost that was accepted. */
export class Stacks extends StackMethods {
  /** What a stack of the template costs a month, computed anew. */
  preview(templateName: string, options?: CallOptions): Promise<StackPreview> {
    return this.transport.request("POST", "/stacks/preview", { ...options, body: { template_name: templateName } });
  }

  /** Upgrades a stack at the cost that is accepted; the status is `up_to_date` when there is nothing to upgrade. */
  upgrade(id: string, acceptedMonthlyCost: number, options?: CallOptions): Promise<StackMigration> {
    const body = { accepted_monthly_cost: acceptedMonthlyCost };
    return this.transport.request("POST", pathOf("stacks", id, "upgrade"), { ...options, body });
  }

  /** Waits until the stack is Running. Throws StackFailed, WaitTimedOut, or the signal's reason. */
  async waitUntilRunning(id: string, { timeoutMs = 1_800_000, signal }: Limits = {}): Promise<Stack> {
    const look = async () => {
      const now = await this.get(id, { signal });
      if (now.status === "Failed" || now.status === "RollingBack") throw new StackFailed(now);
      return now.status === "Running" ? { found: now } : undefined;
    };
    const found = await untilOver(look, "the stack was not Running", { timeoutMs, signal, mayBeAway: () => true });
    if (found === undefined) throw new Error("a wait for a stack ends with it");
    return found;
  }

  /** Waits until the migration is over. Throws MigrationFailed, WaitTimedOut, or the signal's reason. */
  async waitForMigration(id: string, migrationId: string, { timeoutMs = 1_800_000, signal }: Limits = {}) {
    const look = async () => {
      const now = await this.migration(id, migrationId, { signal });
      if (now.status === "Failed") throw new MigrationFailed(now);
      return now.status === "Completed" ? { found: now } : undefined;
    };
    const found = await untilOver(look, "the migration was not over", { timeoutMs, signal, mayBeAway: () => true });
    if (found === undefined) throw new Error("a wait for a migration ends with it");
    return found;
  }

  /** Waits until nothing is left of the stack. */
  async waitUntilGone(id: string, { timeoutMs = 1_800_000, signal }: Limits = {}): Promise<void> {
    const look = async () => {
      await this.get(id, { signal });
      return undefined;
    };
    const isOver = (error: unknown) => error instanceof NotFound;
    await untilOver(look, "the stack was not gone", { timeoutMs, signal, mayBeAway: () => true, isOver });
  }
}
