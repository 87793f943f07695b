import { dataPlaneNames } from "./data-planes.ts";

/** A part of the platform, as its certificate names it. */
export interface Identity {
  readonly kind: (typeof kinds)[number];
  readonly id: string;
}

const kinds = ["machine", "gateway", "controller", "host", ...dataPlaneNames] as const;
const pattern = new RegExp(`^holdfast://([A-Za-z0-9-]+)/(${kinds.join("|")})/([A-Za-z0-9][A-Za-z0-9._-]*)$`);

/** The URI that a certificate carries for a part of the platform. */
export function identityUri(installationId: string, identity: Identity): string {
  const uri = `holdfast://${installationId}/${identity.kind}/${identity.id}`;
  if (!pattern.test(uri)) throw new Error(`${uri} is not an identity`);
  return uri;
}

/**
 * Who a verified peer certificate speaks for, from its `subjectaltname` as node:tls prints it. Undefined for another
 * installation and for anything but exactly one identity: two readings are none.
 */
export function parseIdentity(subjectAltName: string | undefined, installationId: string): Identity | undefined {
  const uris = (subjectAltName ?? "").split(", ").filter((name) => name.startsWith("URI:"));
  const [only] = uris;
  if (only === undefined || uris.length !== 1) return undefined;
  const match = pattern.exec(only.slice("URI:".length));
  if (match === null || match[1] !== installationId) return undefined;
  const [, , kind, id] = match;
  return { kind: kind as Identity["kind"], id: id as string };
}

/** Serial numbers are compared as lower-case hex without leading zeros, however they were printed. */
export function normalSerial(serial: string): string {
  return serial.toLowerCase().replace(/^0+/, "");
}
