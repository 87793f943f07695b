import { request } from "node:https";

/** Where issuers are reached. */
export interface IssuerPlaces {
  readonly addresses: readonly string[];
  readonly port: number;
}

const deadlineMs = 5_000;

/** Does an issuer serve discovery under this name, with this `iss` and a key of the app? */
export async function isServedByIssuers(
  { addresses, port }: IssuerPlaces,
  host: string,
  issuerUrl: string,
  trust: string,
  signal: AbortSignal,
): Promise<boolean> {
  const answers = addresses.map((address) => discovery({ address, port, host, trust }, signal).catch(() => undefined));
  return (await Promise.all(answers)).every((found) => found?.issuer === issuerUrl);
}

function discovery(
  { address, port, host, trust }: { address: string; port: number; host: string; trust: string },
  signal: AbortSignal,
): Promise<{ issuer?: unknown } | undefined> {
  return new Promise((resolve, reject) => {
    const asked = request(
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
    asked.on("error", reject);
    asked.end();
  });
}
