import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Call, type Handlers, type ServedService, serve } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { dialableEndpointOf } from "@holdfast/common/endpoint.ts";
import { HoldfastError, invalid } from "@holdfast/common/errors.ts";
import { type AddHostRequest, type HostSchema, HostService } from "@holdfast/proto/holdfast/admin/v1/host_pb.ts";
import type { HostTrust } from "./host-trust.ts";
import { nameList, type Owners } from "../owner/owners.ts";
import { hostKind, type HostObject, isRemoved, newHost, withHostSpec } from "./host.ts";
import { hostOfMachine, type MachineObject } from "../machine/machine.ts";
import type { MachineOwner } from "../owner/owner-kind.ts";
import { adminPage, type Cursors } from "#kernel/page/cursor.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import { mutate } from "#access/mutate.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { hostMessage } from "./host-message.ts";

export interface HostApiDeps {
  readonly begin: () => UnitOfWork;
  readonly hosts: Collection<HostObject>;
  readonly machines: Collection<MachineObject>;
  readonly owners: Owners;
  readonly hostTrust: Pick<HostTrust, "invite">;
  /** Default factors for hosts that are added without any; null: no limit. */
  readonly overcommit: { readonly memory: number | null; readonly disk: number | null };
  readonly cursors: Cursors;
  readonly clock: Clock;
}

const kind = "host";

/** HostService: operators list, add, cordon, drain and remove hosts. */
export function createHostApi(deps: HostApiDeps): ServedService {
  const { hosts, machines, owners, clock } = deps;
  const messageOf = (host: HostObject): MessageInitShape<typeof HostSchema> =>
    hostMessage(
      host,
      Iterator.from(machines.values()).map(({ object }) => object),
      owners,
    );

  async function require(id: string, signal: AbortSignal): Promise<Stored<HostObject>> {
    const host = await hosts.getCurrent(id, signal);
    if (host === undefined) throw new HoldfastError("OBJECT_NOT_FOUND", `There is no host ${id}.`);
    return host;
  }

  /** Changes the host's spec and writes an audit entry; only the audit entry if the spec is the same. */
  const change = (action: string, id: string, call: Call, edit: (host: HostObject) => Partial<HostObject["spec"]>) =>
    mutate(deps, call, { action: `host.${action}`, kind: "host", visibleIn: [hosts] }, async (unit) => {
      const stored = await require(id, call.signal);
      if (isRemoved(stored.object)) throw new HoldfastError("WRONG_STATE", `Host ${id} was destroyed.`);
      const after = withHostSpec(stored.object, edit(stored.object), clock.now());
      if (JSON.stringify(after.spec) !== JSON.stringify(stored.object.spec)) unit.update(hostKind, stored, after);
      return { id, result: messageOf(after) };
    });

  function expected(request: AddHostRequest, existing: HostObject | undefined): HostObject {
    const { hostId, zone, address } = request;
    const factor = (requested: number | undefined, fallback: number | null) =>
      requested === undefined ? fallback : requested === 0 ? null : requested;
    const memoryOvercommit = factor(request.memoryOvercommit, deps.overcommit.memory);
    const diskOvercommit = factor(request.diskOvercommit, deps.overcommit.disk);
    if (existing === undefined)
      return newHost(hostId, { zone, address, memoryOvercommit, diskOvercommit }, clock.now());
    if (existing.spec.zone === zone && existing.spec.address === address && !isRemoved(existing)) return existing;
    const location =
      existing.spec.address === "" ? "the controllers' own" : `at ${existing.spec.address} in ${existing.spec.zone}`;
    throw new HoldfastError("NAME_TAKEN", `Host ${hostId} is ${location}; remove it first, or choose another name.`);
  }

  const handlers: Handlers<typeof HostService> = {
    listHosts: async ({ page }, call) => {
      const { items, ...next } = adminPage(hosts, () => true, page, call, deps.cursors, "hosts");
      return { hosts: items.map(messageOf), ...next };
    },

    getHost: async ({ hostId }, call) => messageOf((await require(hostId, call.signal)).object),

    addHost: async (request, call) => {
      requireEndpoint(request.address);
      return mutate(deps, call, { action: "host.add", kind, visibleIn: [hosts] }, async (unit) => {
        const { hostId } = request;
        const stored = await hosts.getCurrent(hostId, call.signal);
        const host = expected(request, stored?.object);
        const { enrollment, file } = await deps.hostTrust.invite(hostId, host.spec.address);
        const after = { ...host, status: { ...host.status, enrollment } };
        if (stored === undefined) unit.create(hostKind, after);
        else unit.update(hostKind, stored, after);
        return { id: hostId, result: { host: messageOf(after), joinFile: `${JSON.stringify(file)}\n` } };
      });
    },

    cordonHost: ({ hostId }, call) => change("cordon", hostId, call, () => ({ cordoned: true })),

    uncordonHost: ({ hostId }, call) => change("uncordon", hostId, call, () => ({ cordoned: false, drain: null })),

    drainHost: ({ hostId, stopSingleNodes }, call) =>
      change("drain", hostId, call, ({ spec }) => ({
        cordoned: true,
        drain: { requestedAt: spec.drain?.requestedAt ?? clock.now(), stopSingleNodes },
      })),

    removeHost: ({ hostId, destroyed, lostServices: lostIds, lostOwners }, call) =>
      mutate(
        deps,
        call,
        { action: destroyed ? "host.destroyed" : "host.remove", kind, visibleIn: [hosts] },
        async (unit) => {
          const stored = await require(hostId, call.signal);
          // Every placement changes the host's object, so a cache of this revision has all machines that were placed
          // before.
          await machines.untilRevision(stored.modRevision, 5_000);
          const hostMachines = machines.by(hostOfMachine, hostId).map(({ object }) => object);
          const refusal = hostRemovalRefusal(stored.object, hostMachines, { destroyed, lostOwners, lostIds }, owners);
          if (refusal?.field !== undefined)
            throw invalid({ field: refusal.field, code: "mismatch", detail: refusal.detail });
          if (refusal !== undefined) throw new HoldfastError("WRONG_STATE", refusal.detail);
          if (hostMachines.length === 0) unit.remove(hostKind, stored);
          else unit.update(hostKind, stored, withHostSpec(stored.object, { destroyedAt: clock.now() }, clock.now()));
          return { id: hostId, result: {} };
        },
      ),
  };
  return serve(HostService, handlers);
}

function requireEndpoint(address: string): void {
  try {
    dialableEndpointOf(address);
  } catch {
    throw invalid({
      field: "address",
      code: "invalid",
      detail: "must be host:port, with a name or address that controllers can dial",
    });
  }
}

/** Reason why a host cannot be removed; with `field`, the invalid field of the request. */
export interface RemovalRefusal {
  readonly field?: "lost_services" | "lost_owners";
  readonly detail: string;
}

/** The request to remove a host. */
export interface HostRemoval {
  /** True if the host is destroyed with its data. */
  readonly destroyed: boolean;
  /** Owners whose data may be lost, with the operator's consent. */
  readonly lostOwners: readonly MachineOwner[];
  /** Ids of such owners, from clients that do not send kinds. */
  readonly lostIds: readonly string[];
}

/**
 * The reason why the host cannot be removed, with a remedy; undefined if it can. `hostMachines`: machines whose objects
 * name the host.
 */
export function hostRemovalRefusal(
  { metadata: { id }, spec, status }: HostObject,
  hostMachines: readonly MachineObject[],
  { destroyed, lostOwners, lostIds }: HostRemoval,
  owners: Pick<Owners, "textOf" | "remediesOf" | "isReplaceable">,
): RemovalRefusal | undefined {
  if (spec.address === "")
    return { detail: `Host ${id} is the controllers' own: it can be cordoned and drained, not removed.` };
  if (!destroyed) {
    if (lostIds.length > 0 || lostOwners.length > 0)
      return {
        field: lostIds.length > 0 ? "lost_services" : "lost_owners",
        detail: "is for destroyed hosts only; without `destroyed` the host keeps its data",
      };
    if (hostMachines.length === 0) return undefined;
    const waiting = hostMachines.length - hostMachines.filter(({ spec: { owner } }) => owner !== null).length;
    const remedies = owners.remediesOf(ownersOf(hostMachines));
    const owned = remedies === "" ? "" : ` ${remedies}`;
    const free = waiting === 0 ? "" : ` Machines of the warm pool (${waiting}) are removed when the host is cordoned.`;
    return { detail: `${hostMachines.length} machines are on host ${id}.${owned}${free}` };
  }
  if (status.state === "ready") return { detail: `Host ${id} responds, so it is not destroyed: drain it instead.` };
  const present = ownersOf(hostMachines);
  const isConsented = (owner: MachineOwner) =>
    lostIds.includes(owner.id) || lostOwners.some((lost) => isSameOwner(lost, owner));
  const missing = present.filter((owner) => !owners.isReplaceable(owner) && !isConsented(owner));
  if (missing.length > 0) {
    const detail = `must name every owner whose data is lost, also ${nameList(missing.map(owners.textOf))}`;
    return { field: "lost_owners", detail: `${detail} (${nameList(missing.map(keyOf))})` };
  }
  const foreignIds = lostIds.filter((lost) => !present.some((owner) => owner.id === lost));
  if (foreignIds.length > 0) return { field: "lost_services", detail: `${nameList(foreignIds)} is not on host ${id}` };
  const foreign = lostOwners.filter((lost) => !present.some((owner) => isSameOwner(owner, lost)));
  if (foreign.length > 0)
    return { field: "lost_owners", detail: `${nameList(foreign.map(keyOf))} is not on host ${id}` };
  return undefined;
}

const keyOf = ({ kind, id }: MachineOwner) => `${kind}/${id}`;

function isSameOwner(a: MachineOwner, b: MachineOwner): boolean {
  return a.kind === b.kind && a.id === b.id;
}

/** The owners of these machines, each once, in the order of their ids. */
function ownersOf(machines: readonly MachineObject[]): MachineOwner[] {
  const byKey = new Map(machines.flatMap(({ spec: { owner } }) => (owner === null ? [] : [[keyOf(owner), owner]])));
  return [...byKey.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
}
