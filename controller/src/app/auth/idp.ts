import { type FieldFault, invalid, pointerOf } from "@holdfast/common/errors.ts";
import type { PutAuthIdpProviderRequest } from "@holdfast/proto/holdfast/v1/app_auth_pb.ts";
import { browserUrlFaults } from "../app/checked-url.ts";
import type { IdpSpec } from "./auth.ts";

/** Issuers of providers that are known by their name. */
const knownIssuers: Readonly<Partial<Record<IdpSpec["provider"], string>>> = { google: "https://accounts.google.com" };
const scopesOfOurs = ["openid", "email"];

/** Pure: the provider as it is kept. Throws what is wrong with it. */
export function idpSpecOf(
  request: PutAuthIdpProviderRequest,
  before: IdpSpec | undefined,
  seal: (plain: string) => string,
): IdpSpec {
  const { provider } = request;
  if (provider !== "google" && provider !== "oidc")
    throw invalid({ field: "provider", code: "invalid_value", detail: "must be google or oidc" });
  const known = knownIssuers[provider];
  const { clientId, clientSecret, issuerUrl: given, caCertificate = "" } = request;
  const faults = [
    ...(known === undefined ? issuerFaults(given) : unless(given === undefined, "issuer_url", "is known of google")),
    ...unless(
      caCertificate === "" || caCertificate.includes("-----BEGIN CERTIFICATE-----"),
      "ca_certificate",
      "must be PEM",
    ),
  ];
  const issuerUrl = known ?? given ?? "";
  const isSame = before !== undefined && before.issuerUrl === issuerUrl && before.clientId === clientId;
  if (clientSecret === undefined && !isSame) faults.push(...unless(false, "client_secret", "must be given"));
  if (faults.length > 0) throw invalid(...faults);
  return {
    provider,
    issuerUrl,
    clientId,
    sealedClientSecret: clientSecret === undefined ? (before?.sealedClientSecret ?? "") : seal(clientSecret),
    scopes: [...new Set([...scopesOfOurs, ...(request.scopes?.values ?? [])])],
    caCertificate,
  };
}

function issuerFaults(issuerUrl: string | undefined): FieldFault[] {
  if (issuerUrl === undefined) return unless(false, "issuer_url", "must be given");
  const faults = browserUrlFaults("issuer_url", issuerUrl);
  if (faults.length > 0) return faults;
  const isPlain = issuerUrl.startsWith("https://") && !issuerUrl.includes("?");
  return unless(isPlain, "issuer_url", "must begin with https:// and have no query");
}

function unless(holds: boolean, field: string, detail: string): FieldFault[] {
  return holds ? [] : [{ field, pointer: pointerOf(field), code: "invalid_value", detail }];
}
