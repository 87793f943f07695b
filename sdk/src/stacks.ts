import type { Stack, StackMigration, StackPreview } from "./responses.ts";
import { NotFound } from "./errors.ts";
import { StackMethods } from "./methods.ts";
import { type CallOptions, pathOf } from "./transport.ts";
import { type WaitLimits, pollUntil } from "./wait.ts";

/** The stack has the status Failed or RollingBack instead of Running. */
export class StackFailed extends Error {
  override readonly name = "StackFailed";
  readonly failed: Stack;

  constructor(failed: Stack) {
    super(failed.status_detail ?? `the stack is ${failed.status}`);
    this.failed = failed;
  }
}

/** The migration failed; the steps that were completed before are not undone. */
export class MigrationFailed extends Error {
  override readonly name = "MigrationFailed";
  readonly migration: StackMigration;

  constructor(migration: StackMigration) {
    super(migration.status_detail ?? "the migration failed");
    this.migration = migration;
  }
}

/** Stacks: resources created from a template at an accepted cost. */
export class Stacks extends StackMethods {
  /** The current monthly cost of a stack of the template. */
  preview(templateName: string, options?: CallOptions): Promise<StackPreview> {
    return this.transport.request("POST", "/stacks/preview", { ...options, body: { template_name: templateName } });
  }

  /** Upgrades a stack at an accepted monthly cost; the status is `up_to_date` when there is nothing to upgrade. */
  upgrade(id: string, acceptedMonthlyCost: number, options?: CallOptions): Promise<StackMigration> {
    const body = { accepted_monthly_cost: acceptedMonthlyCost };
    return this.transport.request("POST", pathOf("stacks", id, "upgrade"), { ...options, body });
  }

  /** Waits until the stack is Running. Throws StackFailed, WaitTimedOut, or the signal's reason. */
  async waitUntilRunning(id: string, { timeoutMs = 1_800_000, signal }: WaitLimits = {}): Promise<Stack> {
    const poll = async (signal: AbortSignal) => {
      const now = await this.get(id, { signal });
      if (now.status === "Failed" || now.status === "RollingBack") throw new StackFailed(now);
      return now.status === "Running" ? { found: now } : undefined;
    };
    const found = await pollUntil(poll, "the stack was not Running", {
      timeoutMs,
      signal,
      toleratesOutage: () => true,
    });
    if (found === undefined) throw new Error("a wait for a stack returned no stack");
    return found;
  }

  /** Waits until the migration is completed. Throws MigrationFailed, WaitTimedOut, or the signal's reason. */
  async waitForMigration(id: string, migrationId: string, { timeoutMs = 1_800_000, signal }: WaitLimits = {}) {
    const poll = async (signal: AbortSignal) => {
      const now = await this.migration(id, migrationId, { signal });
      if (now.status === "Failed") throw new MigrationFailed(now);
      return now.status === "Completed" ? { found: now } : undefined;
    };
    const found = await pollUntil(poll, "the migration was not completed", {
      timeoutMs,
      signal,
      toleratesOutage: () => true,
    });
    if (found === undefined) throw new Error("a wait for a migration returned no migration");
    return found;
  }

  /** Waits until the stack is deleted. Throws WaitTimedOut, or the signal's reason. */
  async waitUntilDeleted(id: string, { timeoutMs = 1_800_000, signal }: WaitLimits = {}): Promise<void> {
    const poll = async (signal: AbortSignal) => {
      await this.get(id, { signal });
      return undefined;
    };
    const isExpectedError = (error: unknown) => error instanceof NotFound;
    await pollUntil(poll, "the stack was not deleted", {
      timeoutMs,
      signal,
      toleratesOutage: () => true,
      isExpectedError,
    });
  }
}
