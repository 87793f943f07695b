import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { createBenchInstallation } from "./fleet/installation.ts";
import { measureSteady } from "./fleet/steady.ts";
import { print } from "./support/figures.ts";
import { printHost } from "./support/host.ts";
import { loadCore, pin } from "./support/peer-process.ts";

// Cost of primary leases for one controller, when the primaries of many services request their leases each second: CPU,
// and writes to etcd, which must be none. Every requested lease must be granted.
const { values } = parseArgs({
  options: { services: { type: "string", default: "1000" }, seconds: { type: "string", default: "30" } },
});
const services = Number(values.services);
const seconds = Number(values.seconds);

printHost();
pin(process.pid, loadCore);
const installation = await createBenchInstallation(2 * services);
try {
  const { etcd, machineIds } = installation;
  const controller = await installation.startController("controller-0");
  const agents = await installation.startAgents(controller.ready, String(controller.ready["address"]), controller);
  const primaries = machineIds.slice(0, services);
  await controller.query({ query: "services", primaries });
  const without = await measureSteady(`${2 * services} agents`, [controller], etcd.url, seconds);
  await agents.requestLeases(primaries);
  // By then all have started.
  await sleep(3_000);
  await agents.grants();
  const startedAt = performance.now();
  const withLeases = await measureSteady(`${services} of them primaries with a lease`, [controller], etcd.url, seconds);
  const granted = await agents.grants();
  const elapsedS = (performance.now() - startedAt) / 1_000;
  const core = (withLeases.cores[0] ?? 0) - (without.cores[0] ?? 0);
  print(
    "primary leases: share of a core; each",
    `${(100 * core).toFixed(1)} %; ${((core / services) * 1e6).toFixed(0)} us`,
  );
  print("primary leases granted a second", (granted / elapsedS).toFixed(0), String(services));
  if (granted < 0.97 * services * elapsedS) throw new Error("requested primary leases were not granted");
  await agents.end();
  await controller.end();
} finally {
  await installation.close();
}
