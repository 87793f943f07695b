import type { Call } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { matchesOwnerPath, mayTouch, organizationOf } from "#access/caller.ts";
import { covers } from "#access/scopes.ts";
import type { MonitoredOwner, Monitoring } from "./monitored-owner.ts";
import type { MachineOwner, OwnerKind } from "./owner-kind.ts";

/** The monitored owners of all kinds, by their ids, which are unique across kinds. */
export interface MonitoredOwners
  extends Omit<Monitoring, "noun" | "readScope" | "resourceKind" | "pathSegment" | "healthEvent" | "defaultRules"> {
  /** The monitored kinds, by name. */
  readonly kinds: ReadonlyMap<string, Monitoring>;
  /**
   * True if the caller may see this owner: the path of the call is of its kind or of any kind, and the token has the
   * kind's scope and is not limited to other objects.
   */
  mayRead(owner: MachineOwner, call: Call): boolean;
  /** The owner with this id; undefined without one that the caller may see. */
  find(id: string, call: Call): MonitoredOwner | undefined;
  /** The owner with this id. Throws SERVICE_NOT_FOUND without one that the caller may see. */
  require(id: string, call: Call): MonitoredOwner;
}

export function createMonitoredOwners(ownerKinds: readonly OwnerKind[]): MonitoredOwners {
  const kinds = new Map(
    ownerKinds.flatMap(({ kind, monitoring }) => (monitoring ? [[kind, monitoring] as const] : [])),
  );
  const all = [...kinds.values()];

  function first<T>(read: (kind: Monitoring) => T | undefined): T | undefined {
    for (const kind of all) {
      const found = read(kind);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  function mayRead({ kind, id }: MachineOwner, call: Call): boolean {
    const { readScope: scope, resourceKind = kind } = kinds.get(kind) ?? {};
    return (
      matchesOwnerPath(call, kind) &&
      mayTouch(call, resourceKind, id) &&
      (scope === undefined || covers(call.principal?.scopes ?? new Set(), scope))
    );
  }

  function find(id: string, call: Call): MonitoredOwner | undefined {
    const organizationId = organizationOf(call);
    const found = first((kind) => kind.get(id));
    return found?.organizationId === organizationId && mayRead(found.owner, call) ? found : undefined;
  }

  return {
    kinds,
    get: (id) => first((kind) => kind.get(id)),
    health: (id) => first((kind) => kind.health(id)),
    exists: async (id, signal) => (await Promise.all(all.map((kind) => kind.exists(id, signal)))).includes(true),
    *ids() {
      for (const kind of all) yield* kind.ids();
    },
    ofOrganization: (organizationId) => all.flatMap((kind) => kind.ofOrganization(organizationId)),
    subscribe(onChange) {
      const watches = all.map((kind) => kind.subscribe(onChange));
      return { close: () => watches.forEach((watch) => watch.close()) };
    },
    ready: Promise.all(all.map(({ ready }) => ready)),
    mayRead,
    find,
    require(id, call) {
      const found = find(id, call);
      if (found !== undefined) return found;
      const noun = kinds.get(call.ownerKind ?? "")?.noun ?? "service";
      throw new HoldfastError("SERVICE_NOT_FOUND", `There is no such ${noun} in the organization.`);
    },
  };
}
