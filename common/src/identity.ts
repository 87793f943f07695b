import { dataPlaneNames } from "./data-planes.ts";

/** Identity of a platform component, as its certificate names it. */
export interface Identity {
  readonly kind: (typeof kinds)[number];
  readonly id: string;
}

const kinds = ["machine", "gateway", "controller", "host", ...dataPlaneNames] as const;
const pattern = new RegExp(`^holdfast://([A-Za-z0-9-]+)/(${kinds.join("|")})/([A-Za-z0-9][A-Za-z0-9._-]*)$`);

/** URI in the certificate of a component, such as `holdfast://<installation>/machine/<id>`. */
export function identityUri(installationId: string, identity: Identity): string {
  const uri = `holdfast://${installationId}/${identity.kind}/${identity.id}`;
  if (!pattern.test(uri)) throw new Error(`${uri} is not an identity`);
  return uri;
}

/**
 * Identity of a verified peer certificate, from its `subjectaltname` as node:tls formats it. Undefined for another
 * installation, and unless the certificate has exactly one URI.
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

/** Normalizes a serial number to lower-case hex without leading zeros, for comparison. */
export function canonicalSerial(serial: string): string {
  return serial.toLowerCase().replace(/^0+/, "");
}
