import type { IdentityProvider } from "@holdfast/proto/holdfast/issuer/v1/issuer_pb.ts";

/** What people know a provider by. */
export function providerName({ provider, issuerUrl }: Pick<IdentityProvider, "provider" | "issuerUrl">): string {
  return provider === "google" ? "Google" : (URL.parse(issuerUrl)?.hostname ?? issuerUrl);
}
