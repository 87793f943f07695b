import { readFileSync } from "node:fs";
import { list, text, type ValuesOf } from "@holdfast/common/config.ts";

/** Settings of certificates of domains by a public authority. */
export const domainCertificateSettings = {
  acmeEmail: text(
    "HOLDFAST_ACME_EMAIL",
    "Contact address for the authority, whose terms it accepts; with it and HOLDFAST_INGRESS_REDIRECT_LISTEN, domains of apps get certificates of the authority",
    "",
  ),
  domainsAcmeEmail: text(
    "HOLDFAST_DOMAINS_ACME_EMAIL",
    "The same for domains of apps alone, where the API has another certificate; empty: HOLDFAST_ACME_EMAIL",
    "",
  ),
  acmeDirectoryUrl: text(
    "HOLDFAST_ACME_DIRECTORY",
    "URL of the authority's ACME directory",
    "https://acme-v02.api.letsencrypt.org/directory",
  ),
  acmeCaFile: text(
    "HOLDFAST_ACME_CA_FILE",
    "File of certificates that authenticate the authority besides public ones; empty: none",
    "",
  ),
  redirectListen: list(
    "HOLDFAST_INGRESS_REDIRECT_LISTEN",
    "Listeners of the ingresses to which an authority's requests to port 80 come; empty: none",
    "",
  ),
} as const;

export type DomainCertificateSettings = ValuesOf<typeof domainCertificateSettings>;

/** The authority that the operator has set up for domains; undefined without one. Throws for an unreadable file. */
export function domainAuthorityOf(settings: DomainCertificateSettings) {
  const { acmeEmail, domainsAcmeEmail, acmeDirectoryUrl, acmeCaFile, redirectListen } = settings;
  const email = domainsAcmeEmail || acmeEmail;
  if (email === "" || redirectListen.length === 0) return undefined;
  return {
    email,
    directoryUrl: acmeDirectoryUrl,
    authorities: acmeCaFile === "" ? "" : readFileSync(acmeCaFile, "utf8"),
  };
}
