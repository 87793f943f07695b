import { lookUp } from "@holdfast/common/look-up.ts";
import type { Configuration } from "../metrics-export.ts";
import type { ConfigurationFault } from "./destination.ts";
import type { Field } from "../configuration/field.ts";
import { basicAuthorization } from "./request-encoding.ts";

/** Additional headers that the user configures, such as the credential for a proxy before the destination. */
export const headersField: Field = {
  kind: "secretTexts",
  namePattern: /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$/,
  refusedNames:
    /^(host|content-.*|connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|expect|accept-encoding)$/i,
};

/** Tenant in Mimir, Cortex, Thanos or Loki, sent as header X-Scope-OrgID. */
export const tenantField: Field = {
  kind: "text",
  isTarget: "account",
  max: 150,
  pattern: /^[A-Za-z0-9!\-_.*'()|]+$/,
  requirement: "have letters, digits and !-_.*'()| only",
};

/** The text of a required key of a validated configuration. */
export function configuredText(configuration: Configuration, key: string): string {
  const value = lookUp(configuration, key);
  if (typeof value !== "string") throw new Error(`the configuration has no text ${key}`);
  return value;
}

/** The base URL of a key, without slashes at its end. */
export function configuredBase(configuration: Configuration, key = "endpoint"): string {
  return configuredText(configuration, key).replace(/\/+$/, "");
}

/** Faults of credentials: a user name needs a password, and neither goes with a token. */
export function checkCredentials(
  configuration: Configuration,
  token: "bearer_token" | "api_key",
): readonly ConfigurationFault[] {
  const { username, password } = configuration;
  const faults: ConfigurationFault[] = [];
  if (username !== undefined && password === undefined)
    faults.push({ key: "password", code: "required", detail: "is required with username" });
  if (password !== undefined && username === undefined)
    faults.push({ key: "username", code: "required", detail: "is required with password" });
  if (lookUp(configuration, token) !== undefined && (username !== undefined || password !== undefined))
    faults.push({ key: token, code: "exclusive", detail: "must not be set together with username and password" });
  return faults;
}

/** The Authorization header of basic or bearer credentials; empty without credentials. */
export function credentialHeaders({ username, password, bearer_token }: Configuration): Record<string, string> {
  if (typeof bearer_token === "string") return { authorization: `Bearer ${bearer_token}` };
  if (typeof username === "string" && typeof password === "string")
    return { authorization: basicAuthorization(username, password) };
  return {};
}

/** The configured headers by their names in lower case. */
export function ownHeaders({ headers }: Configuration): Record<string, string> {
  return Object.fromEntries(Object.entries(headers ?? {}).map(([name, value]) => [name.toLowerCase(), String(value)]));
}

/** The configured headers, and the header of the tenant, which has precedence. */
export function tenantHeaders(configuration: Configuration): Record<string, string> {
  const { tenant_id: tenant } = configuration;
  return { ...ownHeaders(configuration), ...(typeof tenant === "string" && { "x-scope-orgid": tenant }) };
}
