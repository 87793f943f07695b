import type { Fleet } from "../fleet/fleet.ts";
import type { ObservedInstance } from "../fleet/session/observations.ts";
import { isUp, type MachineObject } from "../machine/machine.ts";
import type { AuthorityRecord } from "../pki/authority-record.ts";
import type { AuthorityFollowers } from "../pki/authority-rotation-reconciler.ts";
import type { InstallationAuthority } from "../pki/create-authority.ts";
import type { EnrolledStatus } from "../pki/enrolled-status.ts";
import type { Collection } from "../store/collection.ts";
import { type HostObject, isOut } from "./host.ts";

export interface AuthorityFollowersDeps {
  readonly machines: Collection<MachineObject>;
  readonly hosts: Collection<HostObject>;
  readonly fleet: Pick<Fleet, "observation" | "subscribe">;
  readonly authority: Pick<InstallationAuthority, "record">;
}

export function createAuthorityFollowers(deps: AuthorityFollowersDeps): AuthorityFollowers {
  const { machines, hosts, fleet, authority } = deps;
  return {
    behind: () => [
      ...hostsBehind(hosts.values(), authority.record),
      ...machinesBehind(machines.values(), fleet.observation, authority.record),
    ],
    subscribe(onChange) {
      const watching = [machines.subscribe(onChange), hosts.subscribe(onChange), fleet.subscribe(onChange)];
      return {
        close() {
          for (const watch of watching) watch.close();
        },
      };
    },
  };
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

/** The one of before is good until the new one was used; only then is the new one surely on the disk of who has it. */
function isOlder({ certificate }: EnrolledStatus, generation: number): boolean {
  if (certificate === null) return false;
  return certificate.authorityGeneration < generation || certificate.previousSerial !== "";
}
