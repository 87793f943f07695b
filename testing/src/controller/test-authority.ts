import { type Identity, identityUri } from "@holdfast/common/identity.ts";
import { exportKey, newKeyPair } from "@holdfast/common/signing-key.ts";
import { pemOf } from "@holdfast/controller/kernel/pki/authority-record.ts";
import { issueAuthority, issueLeaf, type Leaf, provenKey } from "@holdfast/controller/kernel/pki/issue.ts";
import type { KeyWithCertificate } from "@holdfast/mtls/authority.ts";
import { PublicKey } from "@peculiar/x509";

/** An authority in memory, for tests of TLS without a store. */
export interface TestAuthority {
  /** Certificate of the authority, DER. */
  readonly certificate: Uint8Array;
  /** Trust bundle, PEM. */
  readonly trustBundle: string;
  /** A certificate for this key and these names; it expires in an hour, or at the given time. */
  issue(leaf: TestLeaf): Promise<IssuedLeaf>;
  /** Certificate chain of a server with this name, PEM, for the key of a certificate request. */
  serverChain(request: Uint8Array, name: string): Promise<string>;
  /** A key with its certificate; it expires in an hour, or at the given time. */
  identityOf(installationId: string, identity: Identity, notAfter?: Date): Promise<KeyWithCertificate>;
}

/** A certificate of a server with these names, or of a client with these URIs. */
type TestLeaf = Pick<Leaf, "commonName" | "publicKey"> & Partial<Pick<Leaf, "names" | "uris" | "client" | "notAfter">>;

interface IssuedLeaf {
  readonly der: Uint8Array;
  readonly serial: string;
  readonly notBefore: Date;
  readonly notAfter: Date;
}

const hourMs = 3_600_000;

export async function createTestAuthority(): Promise<TestAuthority> {
  const keys = await newKeyPair();
  const notBefore = new Date(Date.now() - hourMs);
  const inAnHour = () => new Date(Date.now() + hourMs);
  const certificate = await issueAuthority("Test", keys, notBefore, inAnHour());
  const publicKey = await PublicKey.create(keys.publicKey);
  const signer = { certificate, subject: "CN=Test", key: keys.privateKey, publicKey };

  async function issue(leaf: TestLeaf): Promise<IssuedLeaf> {
    const { names = [], uris = [], notAfter = inAnHour(), client = uris.length > 0, ...subject } = leaf;
    const issued = await issueLeaf(signer, { ...subject, names, uris, addresses: [], client, notBefore, notAfter });
    return { ...issued, notBefore, notAfter };
  }

  return {
    certificate,
    trustBundle: pemOf(certificate),
    issue,
    async serverChain(request, name) {
      const { der } = await issue({ commonName: name, publicKey: await provenKey(request), names: [name] });
      return [der, certificate].map(pemOf).join("");
    },
    async identityOf(installationId, identity, notAfter) {
      const keyPair = await newKeyPair();
      const { der, ...issued } = await issue({
        commonName: identity.id,
        publicKey: keyPair.publicKey,
        uris: [identityUri(installationId, identity)],
        ...(notAfter !== undefined && { notAfter }),
      });
      const chain = [der, certificate];
      return {
        chain,
        ...issued,
        generation: 1,
        privateKey: await exportKey(keyPair.privateKey),
        certificate: chain.map(pemOf).join(""),
      };
    },
  };
}
