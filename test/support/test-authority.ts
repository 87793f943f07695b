import { type Identity, identityUri } from "@holdfast/common/identity.ts";
import type { KeyWithCertificate } from "@holdfast/controller/pki/authority.ts";
import { pemOf } from "@holdfast/controller/pki/authority-record.ts";
import { exportKey, issueAuthority, issueLeaf, newKeyPair } from "@holdfast/controller/pki/issue.ts";
import { PublicKey } from "@peculiar/x509";

/** An authority in memory, for tests of mTLS without a store. */
export interface TestAuthority {
  /** PEM. */
  readonly trustBundle: string;
  /** A certificate that ends in an hour, or when it is said. */
  identityOf(installationId: string, identity: Identity, notAfter?: Date): Promise<KeyWithCertificate>;
}

const hourMs = 3_600_000;

export async function createTestAuthority(): Promise<TestAuthority> {
  const keys = await newKeyPair();
  const now = Date.now();
  const certificate = await issueAuthority("Test", keys, new Date(now - hourMs), new Date(now + hourMs));
  const publicKey = await PublicKey.create(keys.publicKey);
  const signer = { certificate, subject: "CN=Test", key: keys.privateKey, publicKey };
  return {
    trustBundle: pemOf(certificate),
    async identityOf(installationId, identity, notAfter = new Date(Date.now() + hourMs)) {
      const own = await newKeyPair();
      const notBefore = new Date(now - hourMs);
      const { der, serial } = await issueLeaf(signer, {
        commonName: identity.id,
        publicKey: own.publicKey,
        uris: [identityUri(installationId, identity)],
        names: [],
        addresses: [],
        client: true,
        notBefore,
        notAfter,
      });
      const chain = [der, certificate];
      return {
        chain,
        serial,
        notBefore,
        notAfter,
        generation: 1,
        privateKey: await exportKey(own.privateKey),
        certificate: chain.map(pemOf).join(""),
      };
    },
  };
}
