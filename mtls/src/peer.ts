import type { ServerDuplexStream, ServerReadableStream, ServerUnaryCall, ServerWritableStream } from "@grpc/grpc-js";
import { canonicalSerial, type Identity, parseIdentity } from "@holdfast/common/identity.ts";
import { createSourceGroups, type SourceGroup } from "@holdfast/common/source-groups.ts";

/** Any call of an mTLS listener, regardless of its messages. */
export type AnyCall = Pick<
  | ServerUnaryCall<unknown, unknown>
  | ServerReadableStream<unknown, unknown>
  | ServerWritableStream<unknown, unknown>
  | ServerDuplexStream<unknown, unknown>,
  "getAuthContext" | "getPeer"
>;

/** The peer of a call, from the certificate that TLS verified. */
export interface Peer {
  readonly identity: Identity;
  readonly serial: string;
  /** Validity of the certificate, in milliseconds since 1970. */
  readonly notBefore: number;
  readonly notAfter: number;
  /** host:port of the peer. */
  readonly address: string;
}

/** The peer of a call; undefined without a certificate or for another installation's. */
export function peerOf(call: AnyCall, installationId: string): Peer | undefined {
  const certificate = call.getAuthContext().sslPeerCertificate;
  if (certificate === undefined) return undefined;
  const identity = parseIdentity(certificate.subjectaltname, installationId);
  if (identity === undefined) return undefined;
  return {
    identity,
    serial: canonicalSerial(certificate.serialNumber),
    notBefore: Date.parse(certificate.valid_from),
    notAfter: Date.parse(certificate.valid_to),
    address: call.getPeer(),
  };
}

const groupsOf = createSourceGroups();

/** Source groups of an address, the narrowest first: an IPv4 address, or the /64, /56 and /48 of an IPv6 one. */
export function sourcesOf(address: string | undefined): readonly SourceGroup[] {
  return groupsOf(address ?? "");
}

/** Source groups of a host:port in the form that grpc-js uses for a call's peer. */
export function sourcesOfPeer(peer: string): readonly SourceGroup[] {
  return sourcesOf(peer.slice(0, peer.lastIndexOf(":")).replace(/^\[|\]$/g, ""));
}
