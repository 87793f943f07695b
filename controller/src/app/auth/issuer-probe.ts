import { request } from "node:https";

/** Addresses and port at which the controller reaches the issuers. */
export interface IssuerEndpoints {
  readonly addresses: readonly string[];
  readonly port: number;
}

const deadlineMs = 5_000;

/** True if every issuer serves discovery (OpenID Connect Discovery 1.0) under this name with this `issuer`. */
export async function isServedByIssuers(
  { addresses, port }: IssuerEndpoints,
  host: string,
  issuerUrl: string,
  trust: string,
  signal: AbortSignal,
): Promise<boolean> {
  const responses = addresses.map((address) =>
    discovery({ address, port, host, trust }, signal).catch(() => undefined),
  );
  return (await Promise.all(responses)).every((found) => found?.issuer === issuerUrl);
}

function discovery(
  { address, port, host, trust }: { address: string; port: number; host: string; trust: string },
  signal: AbortSignal,
): Promise<{ issuer?: unknown } | undefined> {
  return new Promise((resolve, reject) => {
    const discoveryRequest = request(
      {
        host: address,
        port,
        servername: host,
        ca: trust,
        path: "/.well-known/openid-configuration",
        headers: { host: port === 443 ? host : `${host}:${port}` },
        agent: false,
        signal: AbortSignal.any([signal, AbortSignal.timeout(deadlineMs)]),
      },
      (response) => {
        let text = "";
        response.setEncoding("utf8");
        response.on("data", (chunk: string) => {
          if (text.length < 65_536) text += chunk;
        });
        response.on("error", reject);
        response.on("end", () => {
          if (response.statusCode !== 200) return resolve(undefined);
          try {
            resolve(JSON.parse(text) as { issuer?: unknown });
          } catch {
            resolve(undefined);
          }
        });
      },
    );
    discoveryRequest.on("error", reject);
    discoveryRequest.end();
  });
}
