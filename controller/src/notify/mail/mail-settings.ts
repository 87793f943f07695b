import { integer, type Setting, text, type ValuesOf } from "@holdfast/common/config.ts";

/** Transport security of the connection to the mail server. */
const protections = ["starttls", "implicit", "none"] as const;

const protection: Setting<(typeof protections)[number]> = {
  variable: "HOLDFAST_SMTP_TLS",
  description:
    "starttls: the server must offer STARTTLS; implicit: TLS from the first byte; none: mail and password are plain text",
  fallback: "starttls",
  parse(value) {
    const supported = protections.find((each) => each === value);
    if (supported === undefined) throw new Error(`${value} is not one of ${protections.join(", ")}`);
    return supported;
  },
};

/** Settings of the mail server. */
export const mailSettings = {
  smtpHost: text("HOLDFAST_SMTP_HOST", "Host name or address of the mail server; empty: no mail is sent", ""),
  smtpPort: integer("HOLDFAST_SMTP_PORT", "Port of the mail server", 587),
  smtpTls: protection,
  smtpCa: text(
    "HOLDFAST_SMTP_CA",
    "File with CA certificates for the mail server; empty: the public certificate authorities",
    "",
  ),
  smtpUser: text("HOLDFAST_SMTP_USER", "User name at the mail server; empty: no authentication", ""),
  smtpPasswordFile: text("HOLDFAST_SMTP_PASSWORD_FILE", "File with the password at the mail server", ""),
  smtpFrom: text("HOLDFAST_SMTP_FROM", "Sender address, such as alerts@example.com; required with a server", ""),
} as const;

export type MailSettings = ValuesOf<typeof mailSettings>;
