import { type FieldFault, invalid, pointerOf } from "@holdfast/common/errors.ts";
import type { PutAuthIdpProviderRequest } from "@holdfast/proto/holdfast/v1/app_auth_pb.ts";
import type { DestinedSecret, SecretDestination } from "#kernel/secrets/destined-secret.ts";
import { browserUrlFaults } from "../app/checked-url.ts";
import type { IdpSpec } from "./auth.ts";

/** Issuer URLs of the providers whose URL is fixed. */
const fixedIssuers: Readonly<Partial<Record<IdpSpec["provider"], string>>> = { google: "https://accounts.google.com" };
const requiredScopes = ["openid", "email"];

/** The formats of provider and issuer, as far as JSON Schema can express them. */
export const idpForm = { enum: ["google", "oidc"] };
export const issuerUrlForm = { format: "uri", pattern: '^[hH][tT][tT][pP][sS]://[!"$-.0->@-~][!"$->@-~]*$' };

/** Destination of a client secret: the issuer, whose discovery document names the token endpoint. */
export function idpDestinationOf({
  issuerUrl,
  clientId,
  caCertificate,
}: Pick<IdpSpec, "issuerUrl" | "clientId" | "caCertificate">): SecretDestination {
  return { issuer_url: issuerUrl, client_id: clientId, ca_certificate: caCertificate };
}

/** The provider to store; `secretFor` returns its sealed secret. Throws INVALID_REQUEST with all faults. */
export function idpSpecOf(
  request: PutAuthIdpProviderRequest,
  secretFor: (destination: SecretDestination) => DestinedSecret,
): IdpSpec {
  const { provider } = request;
  if (provider !== "google" && provider !== "oidc")
    throw invalid({ field: "provider", code: "invalid_value", detail: "must be google or oidc" });
  const fixedIssuer = fixedIssuers[provider];
  const { clientId, issuerUrl: requestedIssuer, caCertificate = "" } = request;
  const faults = [
    ...(fixedIssuer === undefined
      ? issuerFaults(requestedIssuer)
      : unless(requestedIssuer === undefined, "issuer_url", "must be absent for google, whose issuer is fixed")),
    ...unless(
      caCertificate === "" || caCertificate.includes("-----BEGIN CERTIFICATE-----"),
      "ca_certificate",
      "must be PEM",
    ),
  ];
  const issuerUrl = fixedIssuer ?? requestedIssuer ?? "";
  if (faults.length > 0) throw invalid(...faults);
  return {
    provider,
    issuerUrl,
    clientId,
    sealedClientSecret: secretFor(idpDestinationOf({ issuerUrl, clientId, caCertificate })),
    scopes: [...new Set([...requiredScopes, ...(request.scopes?.values ?? [])])],
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
