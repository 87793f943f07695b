import { join } from "node:path";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { CertificateResponse } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { readIfThere, writeDurably } from "@holdfast/common/durable-file.ts";
import { pemOf } from "./pem.ts";

/** The machine's client certificate with its key, in one file, so that both change together. */
export interface MachineIdentity {
  readonly installationId: string;
  /** PKCS #8 PEM; made here. */
  readonly privateKey: string;
  /** PEM, the leaf first. */
  readonly certificate: string;
  /** PEM of every authority to trust. */
  readonly trustBundle: string;
  readonly issuedAt: number;
  readonly notAfter: number;
  /** Of the authorities by which it was issued. */
  readonly authorityGeneration: number;
  /** Of the token that the identity began with. */
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
      const bytes = await readIfThere(path);
      return bytes === undefined ? undefined : (JSON.parse(bytes.toString("utf8")) as MachineIdentity);
    },
    save: (identity) => writeDurably(path, JSON.stringify(identity), 0o600),
  };
}

/** What an answer of the controller makes of a key. */
export function identityOf(
  response: CertificateResponse,
  issuedAt: number,
  rest: Pick<MachineIdentity, "installationId" | "privateKey" | "tokenDigest">,
): MachineIdentity {
  const { installationId, privateKey, tokenDigest } = rest;
  return {
    installationId,
    privateKey,
    tokenDigest,
    certificate: pemOf(response.chain),
    trustBundle: response.trustBundle,
    issuedAt,
    notAfter: endOf(response),
    authorityGeneration: Number(response.authorityGeneration),
  };
}

/** Milliseconds since 1970. */
export function endOf(response: CertificateResponse): number {
  if (response.notAfter === undefined) throw new Error("the certificate has no end");
  return timestampMs(response.notAfter);
}

/** When two thirds of a certificate's life are over: time for the next one. */
export function renewalTime({ issuedAt, notAfter }: { issuedAt: number; notAfter: number }): number {
  return issuedAt + ((notAfter - issuedAt) * 2) / 3;
}
