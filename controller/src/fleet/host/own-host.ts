import type { Clock } from "@holdfast/common/clock.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { retryConflict } from "#kernel/store/retry-conflict.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { hostKind, type HostObject, type HostSpec, newHost, withHostSpec } from "./host.ts";

export interface OwnHostDeps {
  readonly hosts: Pick<Collection<HostObject>, "fresh" | "reached">;
  readonly begin: () => UnitOfWork;
  readonly clock: Clock;
}

/**
 * The controllers' own host is there from the first start on, as the settings say; whether it is cordoned is its operators' to
 * say. Resolves when the memory has it.
 */
export async function keepOwnHost(
  id: string,
  settings: Pick<HostSpec, "zone" | "memoryOvercommit" | "diskOvercommit">,
  { hosts, begin, clock }: OwnHostDeps,
  signal: AbortSignal,
): Promise<void> {
  await retryConflict(signal, async () => {
    const stored = await hosts.fresh(id, signal);
    const unit = begin();
    if (stored === undefined) {
      unit.create(hostKind, newHost(id, { ...settings, address: "" }, clock.now()));
    } else {
      const after = withHostSpec(stored.object, settings, clock.now());
      if (JSON.stringify(after.spec) === JSON.stringify(stored.object.spec)) return;
      unit.update(hostKind, stored, after);
    }
    await hosts.reached(await unit.commit(signal), 10_000);
  });
}
