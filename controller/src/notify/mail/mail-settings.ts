import { integer, type Setting, text, type ValuesOf } from "@holdfast/common/config.ts";

/** How the connection to the mail server is protected. */
const protections = ["starttls", "implicit", "none"] as const;

const protection: Setting<(typeof protections)[number]> = {
  variable: "HOLDFAST_SMTP_TLS",
  description:
    "starttls: the server must offer STARTTLS; implicit: TLS from the first byte; none: mail and password go as plain text",
  fallback: "starttls",
  parse(value) {
    const known = protections.find((each) => each === value);
    if (known === undefined) throw new Error(`${value} is none of ${protections.join(", ")}`);
    return known;
  },
};

/** The server that takes the platform's mail. */
export const mailSettings = {
  smtpHost: text("HOLDFAST_SMTP_HOST", "Name or address of the server that takes mail; empty: no mail is sent", ""),
  smtpPort: integer("HOLDFAST_SMTP_PORT", "Its port", 587),
  smtpTls: protection,
  smtpCa: text(
    "HOLDFAST_SMTP_CA",
    "File with the authorities of the mail server's certificate; empty for those that everybody trusts",
    "",
  ),
  smtpUser: text("HOLDFAST_SMTP_USER", "User name at the mail server; empty: the server asks for none", ""),
  smtpPasswordFile: text("HOLDFAST_SMTP_PASSWORD_FILE", "File with the password at the mail server", ""),
  smtpFrom: text(
    "HOLDFAST_SMTP_FROM",
    "Address that mail is from, such as alerts@example.com; needed with a server",
    "",
  ),
} as const;

export type MailSettings = ValuesOf<typeof mailSettings>;
