import type { Authority } from "@holdfast/mtls/authority.ts";
import { pemOf } from "@holdfast/mtls/machine-identity.ts";

/** Server certificates of hosts for the key of one data plane, each issued when it is first requested. */
export interface HostCertificates {
  /** The chain of the host's certificate, PEM: the same one until two thirds of its lifetime have passed. */
  chainOf(host: string): Promise<string>;
}

interface HostCertificate {
  readonly chain: string;
  readonly renewAt: number;
}

/** `request`: certificate request (PKCS #10, DER) of the data plane. */
export function createHostCertificates(
  request: Uint8Array,
  { authority, now }: { readonly authority: Pick<Authority, "issueServer">; readonly now: () => number },
): HostCertificates {
  const certificates = new Map<string, HostCertificate>();
  return {
    async chainOf(host) {
      const current = certificates.get(host);
      if (current !== undefined && current.renewAt > now()) return current.chain;
      const { chain, notBefore, notAfter } = await authority.issueServer(request, [host]);
      const lifetimeMs = notAfter.getTime() - notBefore.getTime();
      const issued = { chain: pemOf(chain), renewAt: notBefore.getTime() + (lifetimeMs * 2) / 3 };
      certificates.set(host, issued);
      return issued.chain;
    },
  };
}
