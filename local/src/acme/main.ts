import { setTimeout as sleep } from "node:timers/promises";
import { systemClock } from "@holdfast/common/clock.ts";
import { readConfig } from "@holdfast/common/config.ts";
import { endpointOf } from "@holdfast/common/endpoint.ts";
import { createLog } from "@holdfast/common/log.ts";
import { watchProcessFaults } from "@holdfast/common/process-faults.ts";
import { renewalTime } from "./certificate-store.ts";
import { acmeSettings } from "./config.ts";
import { obtainCertificate } from "./obtain.ts";

const config = readConfig(acmeSettings, process.env);
/** Interval of checks whether a renewal is due. */
const checkMs = 3_600_000;
/** Delays after failures, which stay below the limits of authorities: five failures an hour for a name. */
const [firstRetryMs, lastRetryMs] = [60_000, 6 * 3_600_000];

const log = createLog("acme");
watchProcessFaults({ role: "server", logFault: log.error, monotonicMs: systemClock.monotonicMs });
const stopping = new AbortController();
for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => stopping.abort());

const { names, stateDirectory } = config;
for (let retryMs = firstRetryMs; !stopping.signal.aborted; ) {
  let delayMs = checkMs;
  if (renewalTime(stateDirectory, names) <= systemClock.now()) {
    try {
      await obtainCertificate({ ...config, listen: endpointOf(config.listen) });
      log.info("certificate obtained", { names });
      retryMs = firstRetryMs;
    } catch (error) {
      delayMs = retryMs;
      retryMs = Math.min(retryMs * 4, lastRetryMs);
      log.error("certificate not obtained", { names, error, retryInS: delayMs / 1_000 });
    }
  }
  await sleep(delayMs, undefined, { signal: stopping.signal }).catch(() => undefined);
}
process.exit(0);
