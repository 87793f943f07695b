import { join } from "node:path";
import { inBackground } from "@holdfast/common/background.ts";
import { systemClock } from "@holdfast/common/clock.ts";
import { endpointOf } from "@holdfast/common/endpoint.ts";
import { createLog } from "@holdfast/common/log.ts";
import { watchProcessFaults } from "@holdfast/common/process-faults.ts";
import { createProvider } from "@holdfast/compute/create-provider.ts";
import { readHostConfig } from "./config.ts";
import { openHostCredentials } from "./host-credentials.ts";
import { serveHost } from "./serve-host.ts";

const clock = systemClock;
const checkout = join(import.meta.dirname, "..", "..");
const config = readHostConfig(process.env);
const log = createLog("host", config.logLevel);
watchProcessFaults({ role: "server", logFault: log.error, monotonicMs: clock.monotonicMs });

const { stateDir } = config;
const credentials = await openHostCredentials({ stateDir, clock, random: Math.random, log });
const provider = await createProvider({ config, hostPorts: [], checkout, environment: process.env, clock, log });
const served = await serveHost({
  credentials,
  provider,
  facts: provider.facts,
  ...endpointOf(config.listen),
  log,
});
log.info("serving", { host: credentials.hostId, address: config.listen });

for (const signal of ["SIGTERM", "SIGINT"]) process.once(signal, () => inBackground(log, "stop", stop()));

/** Machines continue; the next start of this program adopts them. */
async function stop(): Promise<void> {
  log.info("stopping", { host: credentials.hostId });
  setTimeout(() => process.exit(0), 2_500).unref();
  credentials.close();
  await served.close();
  await provider.close();
  process.exit(0);
}
