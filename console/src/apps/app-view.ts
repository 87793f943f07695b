import type { AuthIdpProviderChange, NewAuth } from "@holdfast/sdk/requests.ts";
import type { AuthIdpProvider } from "@holdfast/sdk/responses.ts";

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

/** The input of the form that sets a provider of sign-ins. */
export interface ProviderInput {
  readonly provider: string;
  readonly issuer: string;
  readonly client: string;
  readonly secret: string;
}

/** The request that sets a provider; scopes of a stored one remain. */
export function providerOf(
  { provider, issuer, client, secret }: ProviderInput,
  stored: readonly Pick<AuthIdpProvider, "provider" | "scopes">[],
): AuthIdpProviderChange {
  const scopes = stored.find((each) => each.provider === provider)?.scopes;
  return {
    client_id: client.trim(),
    ...(secret !== "" && { client_secret: secret }),
    ...(provider === "oidc" && { issuer_url: issuer.trim() }),
    ...(scopes !== undefined && { scopes }),
  };
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
