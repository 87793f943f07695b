import { readFileSync } from "node:fs";
import { request } from "node:https";
import { setTimeout as sleep } from "node:timers/promises";

/** Resolves when GET /healthz responds with 200 to a client that trusts only the installation's authority. */
export async function untilHealthy(baseUrl: string, authorityFile: string, signal: AbortSignal): Promise<void> {
  while (!(await isHealthy(baseUrl, authorityFile, signal))) await sleep(20, undefined, { signal });
}

/** True if GET /healthz responds with 200 to a client that trusts only the installation's authority. */
export function isHealthy(baseUrl: string, authorityFile: string, signal?: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    let authority: Buffer;
    try {
      authority = readFileSync(authorityFile);
    } catch {
      // The controller has not written the authority yet.
      resolve(false);
      return;
    }
    const options = { ca: authority, agent: false, timeout: 2_000, ...(signal && { signal }) };
    const call = request(`${baseUrl}/healthz`, options, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    call.once("timeout", () => call.destroy());
    call.once("error", () => resolve(false));
    call.end();
  });
}
