import { type RequestOptions, request } from "node:http";
import { text } from "node:stream/consumers";
import { acmeChallengePath } from "@holdfast/common/acme-challenge-path.ts";
import type { IngressEndpoints } from "../ingress/ingress-probe.ts";
import type { Challenge } from "./domain-certificate.ts";

const deadlineMs = 3_000;

/** True if every ingress responds to the challenge of the domain. */
export async function isChallengeServed(
  { addresses, port }: IngressEndpoints,
  domain: string,
  { token, keyAuthorization }: Challenge,
  signal: AbortSignal,
): Promise<boolean> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(deadlineMs)]);
  const responses = addresses.map((host) =>
    responseOf({ host, port, path: `${acmeChallengePath}${token}`, headers: { host: domain }, agent: false }, limit),
  );
  const bodies = await Promise.all(responses.map((response) => response.catch(() => undefined)));
  return bodies.every((body) => body === keyAuthorization);
}

function responseOf(target: RequestOptions, signal: AbortSignal): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const call = request({ ...target, signal }, (response) => {
    text(response).then(resolve, reject);
  });
  call.once("error", reject);
  call.end();
  return promise;
}
