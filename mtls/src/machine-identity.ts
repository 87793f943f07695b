import { join } from "node:path";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { CertificateResponse } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { readIfExists, writeDurably } from "@holdfast/common/durable-file.ts";

/** A machine's client certificate with its key, in one file so that both change atomically. */
export interface MachineIdentity {
  readonly installationId: string;
  /** PKCS #8 PEM, created on this machine. */
  readonly privateKey: string;
  /** PEM, the leaf first. */
  readonly certificate: string;
  /** PEM of all trusted authorities. */
  readonly trustBundle: string;
  readonly issuedAt: number;
  readonly notAfter: number;
  /** Generation of the authorities that issued it. */
  readonly authorityGeneration: number;
  /** Digest of the token that the machine enrolled with. */
  readonly tokenDigest: string;
}

export interface IdentityFile {
  load(): Promise<MachineIdentity | undefined>;
  save(identity: MachineIdentity): Promise<void>;
}

export function createIdentityFile(stateDir: string): IdentityFile {
  const path = join(stateDir, "identity.json");
  return {
    async load() {
      const bytes = await readIfExists(path);
      return bytes === undefined ? undefined : (JSON.parse(bytes.toString("utf8")) as MachineIdentity);
    },
    save: (identity) => writeDurably(path, JSON.stringify(identity), 0o600),
  };
}

/** Creates the identity from a controller's response. */
export function identityOf(
  response: CertificateResponse,
  issuedAt: number,
  pending: Pick<MachineIdentity, "installationId" | "privateKey" | "tokenDigest">,
): MachineIdentity {
  const { installationId, privateKey, tokenDigest } = pending;
  return {
    installationId,
    privateKey,
    tokenDigest,
    certificate: pemOf(response.chain),
    trustBundle: response.trustBundle,
    issuedAt,
    notAfter: expiryOf(response),
    authorityGeneration: Number(response.authorityGeneration),
  };
}

/** Expiry of the certificate in milliseconds since 1970. */
export function expiryOf(response: CertificateResponse): number {
  if (response.notAfter === undefined) throw new Error("the certificate has no expiry");
  return timestampMs(response.notAfter);
}

/** Time to renew a certificate: after two thirds of its lifetime. */
export function renewalTime({ issuedAt, notAfter }: { issuedAt: number; notAfter: number }): number {
  return issuedAt + ((notAfter - issuedAt) * 2) / 3;
}

/** Encodes DER certificates as PEM, one after the other. */
export function pemOf(chain: readonly Uint8Array[]): string {
  return chain.map((der) => `-----BEGIN CERTIFICATE-----\n${folded(der)}\n-----END CERTIFICATE-----\n`).join("");
}

function folded(der: Uint8Array): string {
  const text = Buffer.from(der.buffer, der.byteOffset, der.byteLength).toString("base64");
  return (text.match(/.{1,64}/g) ?? []).join("\n");
}
