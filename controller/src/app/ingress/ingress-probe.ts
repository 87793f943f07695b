import { request } from "node:https";
import { ingressProbePath } from "@holdfast/common/ingress-probe-path.ts";

/** Addresses and port at which the controller reaches the ingresses. */
export interface IngressEndpoints {
  readonly addresses: readonly string[];
  readonly port: number;
}

const deadlineMs = 5_000;

/** True if every ingress has a machine for requests at the host, with a certificate of the installation. */
export async function isServedByIngresses(
  { addresses, port }: IngressEndpoints,
  host: string,
  trust: string,
  signal: AbortSignal,
): Promise<boolean> {
  const statuses = addresses.map((address) => probe({ address, port, host, trust }, signal).catch(() => undefined));
  return (await Promise.all(statuses)).every((status) => status === 204);
}

function probe(
  { address, port, host, trust }: { address: string; port: number; host: string; trust: string },
  signal: AbortSignal,
): Promise<number | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<number | undefined>();
  const call = request({
    host: address,
    port,
    servername: host,
    ca: trust,
    path: ingressProbePath,
    headers: { host },
    agent: false,
    signal: AbortSignal.any([signal, AbortSignal.timeout(deadlineMs)]),
  });
  call.once("response", (response) => {
    response.resume();
    resolve(response.statusCode);
  });
  call.once("error", reject);
  call.end();
  return promise;
}
