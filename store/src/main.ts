import { readFile } from "node:fs/promises";
import { createClientAddresses } from "@holdfast/common/client-address.ts";
import { systemClock } from "@holdfast/common/clock.ts";
import { readConfig } from "@holdfast/common/config.ts";
import { endpointsOf } from "@holdfast/common/endpoint.ts";
import { writeListenersFile } from "@holdfast/common/listeners-file.ts";
import { createLog } from "@holdfast/common/log.ts";
import { directoryKey } from "@holdfast/common/objects/signed-url.ts";
import { watchProcessFaults } from "@holdfast/common/process-faults.ts";
import { readIdentity, waitForIdentity, watchIdentity } from "@holdfast/feed/identity-directory.ts";
import { storeSettings } from "./config.ts";
import { startStoreServer } from "./store-server.ts";

const config = readConfig(storeSettings, process.env);
const log = createLog("store");
watchProcessFaults({ role: "server", logFault: log.error, monotonicMs: systemClock.monotonicMs });
const { directory, listen, identityDirectory } = config;
const { now, monotonicMs } = systemClock;
const clients = createClientAddresses(config);

const stopping = new AbortController();
for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => stopping.abort());

let identity = await waitForIdentity(identityDirectory, stopping.signal);
if (identity !== undefined) {
  const key = directoryKey((await readFile(config.keyFile, "utf8")).trim());
  const first = identity;
  const servers = await Promise.all(
    endpointsOf(listen).map(({ host, port }) =>
      startStoreServer({ directory, key, host, port, identity: first, clients, now, monotonicMs, log }),
    ),
  );
  await writeListenersFile(identityDirectory).catch((error: unknown) => log.warn("listeners not reported", { error }));
  log.info("store ready", { listen });
  const reloadIdentity = async () => {
    try {
      const next = await readIdentity(identityDirectory);
      if (next === undefined || next.certificate === identity?.certificate) return;
      // Key and certificate are two files: an inconsistent pair is read again after the next change.
      for (const server of servers) server.setIdentity(next);
      identity = next;
      log.info("certificate reloaded", {});
    } catch (error) {
      log.warn("certificate not reloaded", { error });
    }
  };
  await watchIdentity(identityDirectory, reloadIdentity, stopping.signal);
  await Promise.all(servers.map((server) => server.close()));
}
log.info("store stopped", {});
