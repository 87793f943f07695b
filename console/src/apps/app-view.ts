import type { NewAuth } from "@holdfast/sdk/requests.ts";

/** The input of the form that enables the sign-in. */
export interface SignInInput {
  readonly attachment: string;
  readonly smtpHost: string;
  readonly smtpPort: string;
  readonly smtpUser: string;
  readonly smtpPassword: string;
  readonly fromAddress: string;
  readonly fromName: string;
  readonly redirects: string;
}

/** The texts of a list with one per line. */
export function linesOf(text: string): readonly string[] {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
}

/** The request that enables the sign-in. Without a mail server the installation's default is used. */
export function authOf(input: SignInInput): NewAuth {
  const redirects = linesOf(input.redirects);
  const smtp = {
    host: input.smtpHost.trim(),
    port: Number(input.smtpPort),
    from_address: input.fromAddress.trim(),
    ...(input.fromName !== "" && { from_name: input.fromName }),
    ...(input.smtpUser !== "" && { username: input.smtpUser }),
    ...(input.smtpPassword !== "" && { password: input.smtpPassword }),
  };
  return {
    attachment_id: input.attachment,
    ...(smtp.host !== "" && { smtp }),
    ...(redirects.length > 0 && { redirect_uris: redirects }),
  };
}
