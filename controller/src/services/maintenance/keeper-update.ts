import type { ManagedServiceObject } from "../service/managed-service.ts";
import type { KeeperOfMachine, MaintenanceWorld, PendingUpdate } from "./pending-update.ts";
import { applyAt, obstacleOf, silenceOf } from "./update-terms.ts";

/** Pure: a start of the service's machines, where one of them runs under an older keeper than it would get then. */
export function keeperUpdate(service: ManagedServiceObject, world: MaintenanceWorld): PendingUpdate | undefined {
  const behind = keepersBehind(world);
  if (behind.length === 0) return undefined;
  const from = Math.min(...behind.map(({ has }) => has));
  const to = Math.max(...behind.map(({ next }) => next));
  const availableSince = service.status.maintenance.keeperSince ?? world.now;
  return {
    id: `keeper-${to}`,
    kind: "keeper",
    title: "A newer keeper of the machine",
    description:
      "The engine is stopped in order, and its machine is started again, from the same image and over the same data. From then on it runs under a newer keeper, the program that starts and ends everything there.",
    from: String(from),
    to: String(to),
    urgent: false,
    availableSince,
    applyAt: applyAt(service, availableSince, undefined, world.now),
    requiresRestart: true,
    changesTextOrder: false,
    blocked: obstacleOf(service, world) ?? silenceOf(world) ?? null,
    noSnapshot: null,
  };
}

/** Pure: those of its machines that get a newer keeper when they are started again. */
export function keepersBehind({ keepers }: MaintenanceWorld): KeeperOfMachine[] {
  return keepers.filter(({ has, next }) => has < next);
}
