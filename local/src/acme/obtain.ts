import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { Client, crypto } from "acme-client";
import type { Endpoint } from "@holdfast/common/endpoint.ts";
import { readText, replaceFileSync } from "../files.ts";
import { storeCertificate } from "./certificate-store.ts";
import { openChallengeServer } from "./challenge-server.ts";

/** The order of a certificate. */
export interface CertificateOrder {
  /** URL of the authority's ACME directory. */
  readonly directoryUrl: string;
  /** Contact address of the account, by which the operator accepts the authority's terms. */
  readonly email: string;
  readonly names: readonly string[];
  /** Address at which the authority finds this machine at port 80. */
  readonly listen: Endpoint;
  readonly stateDirectory: string;
}

/**
 * Obtains a certificate by HTTP-01 (RFC 8555) and stores it. The account's key is stored before its first use, so the
 * order after a crash belongs to the same account. Rejects with the authority's reason.
 */
export async function obtainCertificate(order: CertificateOrder): Promise<void> {
  const { directoryUrl, email, names, listen, stateDirectory } = order;
  mkdirSync(stateDirectory, { recursive: true, mode: 0o700 });
  const accountFile = join(stateDirectory, "account.key");
  const accountKey = readText(accountFile) ?? String(await crypto.createPrivateEcdsaKey("P-256"));
  replaceFileSync(accountFile, accountKey, 0o600);
  const [key, csr] = await crypto.createCsr(
    { commonName: names[0] ?? "", altNames: [...names] },
    await crypto.createPrivateEcdsaKey("P-256"),
  );
  const server = await openChallengeServer(listen);
  try {
    const certificate = await new Client({ directoryUrl, accountKey }).auto({
      csr,
      email,
      termsOfServiceAgreed: true,
      challengePriority: ["http-01"],
      // The authority's own view counts: this machine may reach its public name by another way.
      skipChallengeVerification: true,
      challengeCreateFn: async (_authorization, { token }, keyAuthorization) => server.set(token, keyAuthorization),
      challengeRemoveFn: async (_authorization, { token }) => server.delete(token),
    });
    storeCertificate(stateDirectory, certificate, String(key));
  } finally {
    await server.close();
  }
}
