import { mkdir, rename, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { KeyWithCertificate } from "./pki/authority.ts";
import type { InstallationAuthority } from "./pki/create-authority.ts";
import { createRenewedIdentity } from "./pki/renewed-identity.ts";

/** Writes a file whole or not at all, readable by its owner only. */
async function writePrivately(file: string, text: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const temporary = `${file}.${process.pid}.new`;
  await writeFile(temporary, text, { mode: 0o600 });
  await rename(temporary, file);
}

export interface LocalIdentitiesDeps {
  readonly authority: InstallationAuthority;
  /** Empty for none, like the directory. */
  readonly caFile: string;
  readonly dnsIdentityDir: string;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * What programs on this machine need to trust and be trusted: the authorities, and in local mode the identity of the DNS
 * server that runs beside the controller. Written again whenever one of them is made anew.
 */
export async function keepLocalIdentities(deps: LocalIdentitiesDeps): Promise<{ close(): void }> {
  const { authority, caFile, dnsIdentityDir, clock, log } = deps;
  const writeAuthorities = async () => {
    if (caFile !== "") await writePrivately(caFile, authority.trustBundle);
  };
  await writeAuthorities();
  const failed = (error: unknown) => log.error("identities not written", { error });
  const watching = authority.subscribe(() => void writeAuthorities().catch(failed));
  if (dnsIdentityDir === "") return watching;

  const identity = { kind: "dns", id: "dns-1" } as const;
  const renewed = await createRenewedIdentity({
    authority,
    identity,
    names: ["localhost"],
    addresses: ["127.0.0.1"],
    clock,
    log,
  });
  // The certificate comes last, so that who finds it finds all.
  const writeIdentity = async ({ privateKey, certificate }: KeyWithCertificate) => {
    await writePrivately(join(dnsIdentityDir, "ca.pem"), authority.trustBundle);
    await writePrivately(join(dnsIdentityDir, "key.pem"), privateKey);
    await writePrivately(join(dnsIdentityDir, "cert.pem"), certificate);
  };
  await writeIdentity(renewed.current);
  const renewing = renewed.subscribe((next) => void writeIdentity(next).catch(failed));
  return {
    close() {
      for (const part of [watching, renewing, renewed]) part.close();
    },
  };
}
