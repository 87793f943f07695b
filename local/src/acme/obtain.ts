import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { createServer } from "node:http";
import { Client, crypto } from "acme-client";
import type { Endpoint } from "@holdfast/common/endpoint.ts";
import { listenAt } from "@holdfast/common/open-listeners.ts";
import { readText, replaceFileSync } from "../files.ts";
import { storeCertificate } from "./certificate-store.ts";

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

const challengePrefix = "/.well-known/acme-challenge/";
const challengeConnectionsMax = 64;

/** Responds to HTTP-01 challenges (RFC 8555, section 8.3) while an order is open, and to nothing else. */
export interface ChallengeServer {
  set(token: string, keyAuthorization: string): void;
  delete(token: string): void;
  close(): Promise<void>;
}

/** Rejects with the error of the system if the port is taken or not permitted. */
export async function openChallengeServer(at: Endpoint): Promise<ChallengeServer> {
  const responses = new Map<string, string>();
  const server = createServer({ requestTimeout: 5_000, headersTimeout: 5_000 }, ({ url = "" }, response) => {
    const body = url.startsWith(challengePrefix) ? responses.get(url.slice(challengePrefix.length)) : undefined;
    response.writeHead(body === undefined ? 404 : 200, { "content-type": "text/plain", connection: "close" });
    response.end(body ?? "");
  });
  server.maxConnections = challengeConnectionsMax;
  await listenAt(server, at);
  return {
    set(token, keyAuthorization) {
      responses.set(token, keyAuthorization);
    },
    delete(token) {
      responses.delete(token);
    },
    close: () =>
      new Promise((closed) => {
        server.close(() => closed());
        server.closeAllConnections();
      }),
  };
}
