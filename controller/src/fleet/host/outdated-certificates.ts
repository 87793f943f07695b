import type { Fleet } from "../fleet.ts";
import type { ObservedInstance } from "../session/observations.ts";
import { isUp, type MachineObject } from "../machine/machine.ts";
import type { AuthorityRecord } from "#kernel/pki/authority-record.ts";
import type { OutdatedCertificates } from "#kernel/pki/authority-rotation-reconciler.ts";
import type { InstallationAuthority } from "#kernel/pki/create-authority.ts";
import type { EnrolledStatus } from "#kernel/pki/enrolled-status.ts";
import type { Member, Membership } from "#kernel/runtime/membership.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { type HostObject, isOut } from "./host.ts";

export interface OutdatedCertificatesDeps {
  readonly machines: Collection<MachineObject>;
  readonly hosts: Collection<HostObject>;
  readonly fleet: Pick<Fleet, "observation" | "subscribe">;
  readonly authority: Pick<InstallationAuthority, "record">;
  readonly membership: Pick<Membership, "members" | "subscribe">;
}

export function createOutdatedCertificates(deps: OutdatedCertificatesDeps): OutdatedCertificates {
  const { machines, hosts, fleet, authority, membership } = deps;
  return {
    behind: () => [
      ...controllersBehind(membership.members(), authority.record),
      ...hostsBehind(hosts.values(), authority.record),
      ...machinesBehind(machines.values(), fleet.observation, authority.record),
    ],
    subscribe(onChange) {
      const watching = [machines, hosts, fleet, membership].map((source) => source.subscribe(onChange));
      return {
        close() {
          for (const watch of watching) watch.close();
        },
      };
    },
  };
}

/** Controllers that have not yet given what is new to the data planes on their hosts, such as DNS servers. */
function controllersBehind(
  members: readonly Member[],
  { generation }: Pick<AuthorityRecord, "generation">,
): readonly string[] {
  return members
    .filter(({ authorityGeneration = generation }) => authorityGeneration < generation)
    .map(({ id }) => `controller/${id}`);
}

/**
 * Hosts whose certificates are of an older generation than the record. One that does not answer is waited for: it could not
 * come back without a new join.
 */
function hostsBehind(
  hosts: Iterable<{ readonly object: HostObject }>,
  { generation }: Pick<AuthorityRecord, "generation">,
): Iterable<string> {
  return Iterator.from(hosts)
    .map(({ object }) => object)
    .filter((host) => !isOut(host) && isOlder(host.status, generation))
    .map(({ metadata }) => `host/${metadata.id}`);
}

/**
 * Machines whose certificates are of an older generation than the record. One that is off is not waited for: it enrolls
 * when it starts.
 */
function machinesBehind(
  machines: Iterable<{ readonly object: MachineObject }>,
  observation: (machineId: string) => ObservedInstance | undefined,
  { generation }: Pick<AuthorityRecord, "generation">,
): Iterable<string> {
  return Iterator.from(machines)
    .map(({ object }) => object)
    .filter((machine) => isUp(machine) && machine.metadata.deletionRequestedAt === undefined)
    .filter((machine) => isBehind(machine, observation(machine.metadata.id), generation))
    .map(({ metadata }) => metadata.id);
}

function isBehind({ status }: MachineObject, observed: ObservedInstance | undefined, generation: number): boolean {
  if (status.certificate === null) return false;
  if (isOlder(status, generation)) return true;
  const shown = Number(observed?.instance.certificateGeneration ?? 0n);
  return observed?.instance.state === "running" && shown < generation;
}

/**
 * The previous certificate stays valid until the new one was used: only then is the new one surely on the machine's
 * disk.
 */
function isOlder({ certificate }: EnrolledStatus, generation: number): boolean {
  if (certificate === null) return false;
  return certificate.authorityGeneration < generation || certificate.previousSerial !== "";
}
