import type { EngineDeps } from "../engine-deps.ts";
import type { Instance } from "../engine-driver.ts";
import {
  type CertificateFiles,
  certificateFilesIn,
  createCertificates as createMemberCertificates,
  type Party,
} from "../member-certificates.ts";
import { certificatesDirectory, type DataPath } from "./layout.ts";

/** Subject of a party's certificate, from which the broker derives the name of its principal. */
export { principalOf } from "../member-certificates.ts";

const filesOf = (data: DataPath): CertificateFiles => certificateFilesIn(certificatesDirectory(data));

/** PEM file of a party's key and certificate. */
export const partyFile = (data: DataPath, party: Party): string => filesOf(data).party(party);
/** Certificates that the broker's ports for clients trust: those of the front and of the agent. */
export const trustedClients = (data: DataPath): string => filesOf(data).trustedClients;
/** The members' authority, which the other ports and the clients of all ports trust. */
export const membersAuthority = (data: DataPath): string => filesOf(data).membersAuthority;

/** Creates the certificates of all parties, unless they exist. They appear together or not at all. */
export function createCertificates(deps: EngineDeps, instance: Instance, signal: AbortSignal): Promise<void> {
  return createMemberCertificates(deps, instance, filesOf(instance), signal);
}
