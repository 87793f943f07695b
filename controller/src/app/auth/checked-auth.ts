import { type FieldFault, pointerOf } from "@holdfast/common/errors.ts";
import { isPlainText, plainPattern } from "@holdfast/common/plain-text.ts";
import type { NewAuthSmtp, NewAuthTheme } from "@holdfast/proto/holdfast/v1/app_auth_pb.ts";
import { browserUrlFaults, exactUrlFaults, redirectUriFaults } from "../app/checked-url.ts";
import type { ThemeSpec } from "./auth.ts";

/**
 * One plain address of printable ASCII without quotes, comments or lists, so that it cannot inject a mail header (RFC
 * 5322).
 */
const address = /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*$/;
const ports = [25, 465, 587, 2_525];
const hostName = /^[A-Za-z0-9:]([A-Za-z0-9.:-]*[A-Za-z0-9])?$/;

/** The formats, as far as JSON Schema can express them. */
export const hostNameForm = { pattern: hostName.source };
export const portForm = { enum: ports };
export const pemForm = { pattern: "^[^\\x00]*-----BEGIN CERTIFICATE-----[^\\x00]*$" };
export const visibleForm = { pattern: plainPattern };
export const oneLineForm = { pattern: "^[^\\r\\n\\x00]*$" };

export function isAddress(text: string): boolean {
  return text.length <= 254 && address.test(text);
}

/** Faults of a mail server beyond the proto's rules. */
export function smtpFaults(smtp: NewAuthSmtp): FieldFault[] {
  const { host, port, username, password, fromAddress, fromName, caCertificate } = smtp;
  return [
    ...unless(ports.includes(port), "smtp.port", `must be one of ${ports.join(", ")}`),
    ...unless(hostName.test(host), "smtp.host", "must be a name or an address"),
    ...unless(username !== undefined || password === undefined, "smtp.password", "needs username"),
    ...unless(isAddress(fromAddress), "smtp.from_address", "must be one plain address, such as app@example.com"),
    ...unless(isPlainText(fromName), "smtp.from_name", "must not have control or invisible characters"),
    ...unless(isPlainText(username ?? ""), "smtp.username", "must not have control or invisible characters"),
    ...unless(!/[\r\n\0]/.test(password ?? ""), "smtp.password", "must not have line ends"),
    ...unless(
      caCertificate === undefined || caCertificate.includes("-----BEGIN CERTIFICATE-----"),
      "smtp.ca_certificate",
      "must be PEM",
    ),
  ];
}

/** Faults of a theme. */
export function themeFaults({ displayName, logoUrl }: NewAuthTheme): FieldFault[] {
  const isHttps = logoUrl === undefined || /^https:\/\//i.test(logoUrl);
  return [
    ...unless(isPlainText(displayName ?? ""), "theme.display_name", "must not have control or invisible characters"),
    ...unless(isHttps, "theme.logo_url", "must begin with https://"),
    ...(logoUrl === undefined || !isHttps ? [] : browserUrlFaults("theme.logo_url", logoUrl)),
  ];
}

export function themeSpecOf({ displayName, brandColor, logoUrl }: NewAuthTheme): ThemeSpec {
  return {
    ...(displayName !== undefined && { displayName }),
    ...(brandColor !== undefined && { brandColor: brandColor.toLowerCase() }),
    ...(logoUrl !== undefined && { logoUrl }),
  };
}

/** Faults of a list of redirect URIs with at least `minimum` entries. */
export function uriFaults(field: string, uris: readonly string[], minimum = 0): FieldFault[] {
  return [
    ...unless(uris.length >= minimum, field, "must have at least one entry"),
    ...uris.flatMap((uri, index) => redirectUriFaults(`${field}[${index}]`, uri)),
  ];
}

/** Faults of origins, which are URLs without a path. */
export function originFaults(field: string, origins: readonly string[]): FieldFault[] {
  return origins.flatMap((origin, index) => {
    const faults = exactUrlFaults(`${field}[${index}]`, origin);
    if (faults.length > 0) return faults;
    return unless(URL.parse(origin)?.origin === origin, `${field}[${index}]`, "must be an origin, without a path");
  });
}

function unless(holds: boolean, field: string, detail: string): FieldFault[] {
  return holds ? [] : [{ field, pointer: pointerOf(field), code: "invalid_value", detail }];
}
