import { Agent } from "node:https";
import { rootCertificates } from "node:tls";
import type { Client, Order } from "acme-client";
import type { Challenge } from "./domain-certificate.ts";

/** State of an order at the authority (RFC 8555, section 7.1.6). */
export type OrderState =
  | { readonly state: "pending"; readonly isChallengeOpen: boolean }
  | { readonly state: "ready" | "processing" | "valid" }
  | { readonly state: "invalid"; readonly reason: string };

/** A public authority by its protocol. All methods reject with AuthorityRefusal or AuthorityUnavailable. */
export interface AcmeAuthority {
  readonly directoryUrl: string;
  /** Creates an order. `challenge` is null if the authority has a proof of the domain already. */
  begin(domain: string): Promise<{ readonly url: string; readonly challenge: Challenge | null }>;
  stateOf(url: string): Promise<OrderState>;
  /** Reports that the challenge can be verified. */
  answer(challenge: Challenge): Promise<void>;
  /** Requests the certificate of an order that is ready. `key`: its private key, PEM. */
  finalize(url: string, domain: string, key: string): Promise<void>;
  /** The chain of a valid order, PEM. */
  certificateOf(url: string): Promise<string>;
}

/** The authority responded, and refused. Its message is the authority's. */
export class AuthorityRefusal extends Error {
  override readonly name = "AuthorityRefusal";
}

/** The authority did not respond. `cause` is the reason. */
export class AuthorityUnavailable extends Error {
  override readonly name = "AuthorityUnavailable";
}

export interface AcmeSettings {
  readonly directoryUrl: string;
  /** Contact address of the account, by which the operator accepts the authority's terms. */
  readonly email: string;
  /** Certificates that authenticate the authority besides the public ones, PEM; empty: none. */
  readonly authorities: string;
  /** Private key of the account, PEM. */
  readonly accountKey: () => Promise<string>;
}

const requestTimeoutMs = 15_000;
const responseMax = 262_144;
const token = /^[A-Za-z0-9_-]{16,256}$/;

/**
 * The client is loaded with the first order: most controllers never need it. Its settings of connections are those of
 * its module, so that a process has one authority.
 */
export function createAcmeAuthority(settings: AcmeSettings): AcmeAuthority {
  const { directoryUrl, email, authorities, accountKey } = settings;
  let opening: Promise<Client> | undefined;

  async function open(): Promise<Client> {
    const { axios, Client: AcmeClient } = await import("acme-client");
    Object.assign(axios.defaults, {
      // The reconciler repeats orders, after delays that it stores.
      acmeSettings: { retryMaxAttempts: 0, retryDefaultDelay: 1 },
      timeout: requestTimeoutMs,
      maxContentLength: responseMax,
      maxRedirects: 0,
      httpsAgent: new Agent({ ca: authorities === "" ? [...rootCertificates] : [...rootCertificates, authorities] }),
    });
    const client = new AcmeClient({ directoryUrl, accountKey: await accountKey() });
    await client.createAccount({ termsOfServiceAgreed: true, contact: [`mailto:${email}`] });
    return client;
  }

  function opened(): Promise<Client> {
    opening ??= open().catch((error: unknown) => {
      opening = undefined;
      throw error;
    });
    return opening;
  }

  async function call<T>(use: (client: Client) => Promise<T>): Promise<T> {
    try {
      return await use(await opened());
    } catch (error) {
      // The client throws a plain error with the text of a response, and others where the connection failed.
      if (error instanceof Error && error.constructor === Error)
        throw new AuthorityRefusal(error.message, { cause: error });
      throw new AuthorityUnavailable("The certificate authority does not respond.", { cause: error });
    }
  }

  return {
    directoryUrl,
    begin: (domain) =>
      call(async (client) => {
        const order = await client.createOrder({ identifiers: [{ type: "dns", value: domain }] });
        const { authorization, challenge } = await proofOf(client, order);
        if (authorization?.status === "valid") return { url: order.url, challenge: null };
        if (challenge === undefined || !token.test(challenge.token))
          throw new Error("The authority has no challenge of the type http-01 for the domain.");
        const keyAuthorization = await client.getChallengeKeyAuthorization(challenge);
        return { url: order.url, challenge: { url: challenge.url, token: challenge.token, keyAuthorization } };
      }),
    stateOf: (url) =>
      call(async (client) => {
        const order = await orderAt(client, url);
        const { status } = order;
        if (status === "ready" || status === "processing" || status === "valid") return { state: status };
        const { challenge } = await proofOf(client, order);
        if (status === "pending") return { state: "pending", isChallengeOpen: challenge?.status === "pending" };
        return { state: "invalid", reason: reasonOf(challenge) };
      }),
    answer: ({ url, token: name }) =>
      call(async (client) => {
        await client.completeChallenge({ type: "http-01", url, token: name, status: "pending" });
      }),
    finalize: (url, domain, key) =>
      call(async (client) => {
        const { crypto } = await import("acme-client");
        const [, request] = await crypto.createCsr({ altNames: [domain] }, key);
        await client.finalizeOrder(await orderAt(client, url), request);
      }),
    certificateOf: (url) => call(async (client) => client.getCertificate(await orderAt(client, url))),
  };
}

/** The current state of an order. The client reads nothing but the URL of the order that it gets. */
function orderAt(client: Client, url: string): Promise<Order> {
  return client.getOrder({ url, status: "pending", identifiers: [], authorizations: [], finalize: "" });
}

async function proofOf(client: Client, order: Order) {
  const [authorization] = await client.getAuthorizations(order);
  return { authorization, challenge: authorization?.challenges.find(({ type }) => type === "http-01") };
}

/** The authority's reason for an invalid challenge: a problem document (RFC 7807). */
function reasonOf(challenge: { readonly error?: object } | undefined): string {
  const { error } = challenge ?? {};
  const detail = error !== undefined && "detail" in error ? error.detail : undefined;
  return typeof detail === "string" ? detail : "The authority did not verify the domain.";
}
