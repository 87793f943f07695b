import type { ServerDuplexStream, ServerReadableStream, ServerUnaryCall, ServerWritableStream } from "@grpc/grpc-js";
import type { Identity } from "@holdfast/common/identity.ts";
import { normalSerial, parseIdentity } from "@holdfast/common/identity.ts";

/** Any call of the agent listener, its messages forgotten. */
export type AnyCall = Pick<
  | ServerUnaryCall<unknown, unknown>
  | ServerReadableStream<unknown, unknown>
  | ServerWritableStream<unknown, unknown>
  | ServerDuplexStream<unknown, unknown>,
  "getAuthContext" | "getPeer"
>;

/** Who is at the other end, by the certificate that TLS verified. */
export interface Peer {
  readonly identity: Identity;
  readonly serial: string;
  /** When the certificate begins and ends, milliseconds since 1970. */
  readonly beganAt: number;
  readonly endsAt: number;
  /** host:port that the connection came from. */
  readonly address: string;
}

/** Undefined for a peer without a certificate, and for one whose certificate is not good here. */
export function peerOf(call: AnyCall, installationId: string): Peer | undefined {
  const certificate = call.getAuthContext().sslPeerCertificate;
  if (certificate === undefined) return undefined;
  const identity = parseIdentity(certificate.subjectaltname, installationId);
  if (identity === undefined) return undefined;
  return {
    identity,
    serial: normalSerial(certificate.serialNumber),
    beganAt: Date.parse(certificate.valid_from),
    endsAt: Date.parse(certificate.valid_to),
    address: call.getPeer(),
  };
}
