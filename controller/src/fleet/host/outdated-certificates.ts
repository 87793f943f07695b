import type { Fleet } from "../fleet.ts";
import type { ObservedInstance } from "../session/observations.ts";
import { isUp, type MachineObject } from "../machine/machine.ts";
import type { AuthorityRecord } from "#kernel/pki/authority-record.ts";
import type { OutdatedCertificates } from "#kernel/pki/authority-rotation-reconciler.ts";
import type { InstallationAuthority } from "#kernel/pki/create-authority.ts";
import type { EnrolledStatus } from "#kernel/pki/enrollment.ts";
import type { RegisteredController, ControllerRegistry } from "#kernel/runtime/controller-registry.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { type HostObject, isRemoved } from "./host.ts";

export interface OutdatedCertificatesDeps {
  readonly machines: Collection<MachineObject>;
  readonly hosts: Collection<HostObject>;
  readonly fleet: Pick<Fleet, "observation" | "subscribe">;
  readonly authority: Pick<InstallationAuthority, "record">;
  readonly controllerRegistry: Pick<ControllerRegistry, "controllers" | "subscribe">;
}

/** Finds machines and hosts with certificates of an earlier generation of the authority. A rotation waits for them. */
export function createOutdatedCertificates(deps: OutdatedCertificatesDeps): OutdatedCertificates {
  const { machines, hosts, fleet, authority, controllerRegistry } = deps;
  return {
    outdated: () => [
      ...outdatedControllers(controllerRegistry.controllers(), authority.record),
      ...outdatedHosts(hosts.values(), authority.record),
      ...outdatedMachines(machines.values(), fleet.observation, authority.record),
    ],
    subscribe(onChange) {
      const watches = [machines, hosts, fleet, controllerRegistry].map((source) => source.subscribe(onChange));
      return {
        close() {
          for (const watch of watches) watch.close();
        },
      };
    },
  };
}

/**
 * Controllers that have not yet delivered the new trust bundle to the data planes on their hosts, such as DNS servers.
 */
function outdatedControllers(
  members: readonly RegisteredController[],
  { generation }: Pick<AuthorityRecord, "generation">,
): readonly string[] {
  return members
    .filter(({ authorityGeneration = generation }) => authorityGeneration < generation)
    .map(({ id }) => `controller/${id}`);
}

/**
 * Hosts whose certificates are of an older generation than the record. Unreachable hosts count as well: after the
 * rotation they could not return without a new join file.
 */
function outdatedHosts(
  hosts: Iterable<{ readonly object: HostObject }>,
  { generation }: Pick<AuthorityRecord, "generation">,
): Iterable<string> {
  return Iterator.from(hosts)
    .map(({ object }) => object)
    .filter((host) => !isRemoved(host) && hasOutdatedCertificate(host.status, generation))
    .map(({ metadata }) => `host/${metadata.id}`);
}

/** Machines whose certificates are of an older generation than the record. Stopped machines enroll at their start. */
function outdatedMachines(
  machines: Iterable<{ readonly object: MachineObject }>,
  observation: (machineId: string) => ObservedInstance | undefined,
  { generation }: Pick<AuthorityRecord, "generation">,
): Iterable<string> {
  return Iterator.from(machines)
    .map(({ object }) => object)
    .filter((machine) => isUp(machine) && machine.metadata.deletionRequestedAt === undefined)
    .filter((machine) => isOutdated(machine, observation(machine.metadata.id), generation))
    .map(({ metadata }) => metadata.id);
}

function isOutdated({ status }: MachineObject, observed: ObservedInstance | undefined, generation: number): boolean {
  if (status.certificate === null) return false;
  if (hasOutdatedCertificate(status, generation)) return true;
  const presented = Number(observed?.instance.certificateGeneration ?? 0n);
  return observed?.instance.state === "running" && presented < generation;
}

/** An unused renewal counts as outdated: only the use of a certificate proves that it is on the machine's disk. */
function hasOutdatedCertificate({ certificate }: EnrolledStatus, generation: number): boolean {
  if (certificate === null) return false;
  return certificate.authorityGeneration < generation || certificate.previousSerial !== "";
}
