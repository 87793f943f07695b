import { readFileSync } from "node:fs";
import { request } from "node:https";
import { setTimeout as sleep } from "node:timers/promises";

/** Resolves when GET /healthz answers 200 to a client that trusts the installation's authority only. */
export async function untilHealthy(baseUrl: string, authorityFile: string, signal: AbortSignal): Promise<void> {
  while (!(await isHealthy(`${baseUrl}/healthz`, authorityFile, signal))) await sleep(20, undefined, { signal });
}

function isHealthy(url: string, authorityFile: string, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    let authority: Buffer;
    try {
      authority = readFileSync(authorityFile);
    } catch {
      // The controller has not written it yet.
      resolve(false);
      return;
    }
    const call = request(url, { ca: authority, agent: false, timeout: 2_000, signal }, (answer) => {
      answer.resume();
      resolve(answer.statusCode === 200);
    });
    call.once("timeout", () => call.destroy());
    call.once("error", () => resolve(false));
    call.end();
  });
}
