import { isIP } from "node:net";
import { join } from "node:path";
import { endpointOf } from "@holdfast/common/endpoint.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import { type ChildSpec, nodejsProcess } from "../child.ts";
import type { Layout } from "../layout.ts";
import type { PlatformParts } from "../platform-parts.ts";
import { UserError } from "../user-error.ts";
import { certificateFiles } from "./certificate-store.ts";
import { acmeSettings } from "./config.ts";

type AcmeParts = Pick<PlatformParts, "layout" | "environment" | "advertised" | "programs">;

const directoryOf = ({ pki }: Layout) => join(pki, "acme");

/** True if the operator wants the API's certificate from a public authority. */
export function isAcmeEnabled(environment: PlatformParts["environment"]): boolean {
  return Boolean(lookUp(environment, "HOLDFAST_ACME_EMAIL"));
}

/** Address of the ACME client of the API where the ingress has the port of challenges itself. */
const behindIngress = "127.0.0.1:8402";

/**
 * host:port to which the ingress passes the challenges of the API's names, because it redirects at the port at which
 * the API's ACME client would listen; empty if the client listens there.
 */
export function challengesServerOf(environment: PlatformParts["environment"]): string {
  const redirects = (lookUp(environment, "HOLDFAST_INGRESS_REDIRECT_LISTEN") ?? "").split(",").filter(Boolean);
  const { port } = endpointOf(lookUp(environment, "HOLDFAST_ACME_LISTEN") ?? acmeSettings.listen.fallback ?? "");
  const isShared = isAcmeEnabled(environment) && redirects.some((each) => endpointOf(each).port === port);
  return isShared ? behindIngress : "";
}

/** Settings of controllers for a certificate that the ACME client obtains; none if it is not enabled. */
export function acmeCertificateSettings({
  layout,
  environment,
}: Pick<AcmeParts, "layout" | "environment">): Record<string, string> {
  if (!isAcmeEnabled(environment)) return {};
  if (lookUp(environment, "HOLDFAST_API_CERT_FILE"))
    throw new UserError("HOLDFAST_ACME_EMAIL and HOLDFAST_API_CERT_FILE are two certificates of the API; set one");
  const { certificate, key } = certificateFiles(directoryOf(layout));
  return {
    HOLDFAST_API_CERT_FILE: certificate,
    HOLDFAST_API_CERT_KEY_FILE: key,
    HOLDFAST_API_CERT_AWAITED: "yes",
  };
}

/** The process that obtains and renews the certificate of the advertised name; undefined if it is not enabled. */
export function acmeChild({ layout, environment, advertised, programs }: AcmeParts): ChildSpec | undefined {
  if (!isAcmeEnabled(environment)) return undefined;
  const name = advertised?.advertise;
  if (name === undefined || isIP(name) !== 0)
    throw new UserError("HOLDFAST_ACME_EMAIL: a certificate needs a public name of this machine: --advertise NAME");
  const authorities = lookUp(environment, "HOLDFAST_ACME_CA_FILE");
  const challengesServer = challengesServerOf(environment);
  return nodejsProcess("acme", programs.acme, environment, {
    HOLDFAST_ACME_NAMES: [name, ...(lookUp(environment, "HOLDFAST_ACME_NAMES")?.split(",") ?? [])].join(","),
    HOLDFAST_ACME_STATE_DIR: directoryOf(layout),
    ...(challengesServer !== "" && { HOLDFAST_ACME_LISTEN: challengesServer }),
    ...(authorities && { NODE_EXTRA_CA_CERTS: authorities }),
  });
}
