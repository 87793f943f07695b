import type { Client } from "@holdfast/sdk/client.ts";
import type { CliCommand } from "../command.ts";
import { omitUndefined } from "../flag-values.ts";

interface FailingKey {
  readonly key: string;
  readonly failures: number;
  readonly since: string;
  readonly lastError: string;
  readonly nextTryAt?: string;
}

interface Reconciler {
  readonly reconciler: string;
  readonly controllerId: string;
  /** Absent for 0. */
  readonly failing?: number;
  readonly failingKeys?: readonly FailingKey[];
}

interface Response {
  readonly reconcilers?: readonly Reconciler[];
  readonly nextCursor?: string;
  readonly unreachableControllers?: readonly string[];
}

/** Commands for the reconcilers of controllers. */
export function addAdminReconciles(admin: CliCommand): void {
  admin
    .command("reconciles")
    .description("show the reconcilers of all controllers: waiting, running and failing keys, and the last error")
    .option("--failing", "the failing keys, with their errors and next attempts")
    .example("admin reconciles")
    .example("admin reconciles --failing")
    .does(async ({ passwordClient, output }, { failing = false }: { failing?: boolean }) => {
      const { reconcilers, unreachable } = await readReconcilers(await passwordClient(), failing);
      if (failing) {
        output.list(reconcilers.flatMap(keysOf), [
          "reconciler",
          "key",
          "failures",
          "since",
          "nextTryAt",
          "lastError",
          "controllerId",
        ]);
        for (const { reconciler, controllerId, more } of reconcilers.map(withRemainder)) {
          if (more > 0) output.info(`${more} more keys of ${reconciler} fail at ${controllerId}.`);
        }
      } else {
        const columns = ["reconciler", "controllerId", "queued", "running", "failing", "lastRunAt", "lastErrorAt"];
        output.list(reconcilers, [...columns, "lastError"]);
      }
      for (const id of unreachable) output.info(`Controller ${id} did not respond: its reconcilers are not listed.`);
    });
}

async function readReconcilers(client: Client, failing: boolean) {
  const reconcilers: Reconciler[] = [];
  const unreachable = new Set<string>();
  let cursor: string | undefined;
  do {
    const page = { limit: 200, ...omitUndefined({ cursor }) };
    const response = await client.admin<Response>("ControlService", "ListReconciles", { failing, page });
    reconcilers.push(...(response.reconcilers ?? []));
    for (const id of response.unreachableControllers ?? []) unreachable.add(id);
    cursor = response.nextCursor || undefined;
  } while (cursor !== undefined);
  return { reconcilers, unreachable };
}

function keysOf({ reconciler, controllerId, failingKeys = [] }: Reconciler): object[] {
  return failingKeys.map((each) => ({ reconciler, ...each, controllerId }));
}

/** The reconciler with the number of its failing keys that the response does not describe. */
function withRemainder(each: Reconciler): Reconciler & { readonly more: number } {
  return { ...each, more: (each.failing ?? 0) - (each.failingKeys?.length ?? 0) };
}
