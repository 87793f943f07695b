import { inBackground } from "@holdfast/common/background.ts";
import { createClientAddresses } from "@holdfast/common/client-address.ts";
import { systemClock } from "@holdfast/common/clock.ts";
import { readConfig } from "@holdfast/common/config.ts";
import { endpointsOf } from "@holdfast/common/endpoint.ts";
import { createLog } from "@holdfast/common/log.ts";
import { watchProcessFaults } from "@holdfast/common/process-faults.ts";
import { follow } from "@holdfast/feed/follow.ts";
import { readIdentity, waitForIdentity, watchIdentity } from "@holdfast/feed/identity-directory.ts";
import { createAccessTokens } from "./access-token.ts";
import { registrySettings } from "./config.ts";
import { createControllerFeed } from "./controller-feed.ts";
import { openImageStorage } from "./image-storage.ts";
import { createRegistryProgram } from "./registry-program.ts";
import { startRegistryServer } from "./registry-server.ts";
import { createRepositoryUsage } from "./repository-usage.ts";
import { sharedKeysOf } from "./shared-keys.ts";

const config = readConfig(registrySettings, process.env);
const log = createLog("registry");
watchProcessFaults({ role: "server", logFault: log.error, monotonicMs: systemClock.monotonicMs });
const { listen, identityDirectory, installationId } = config;
const { now, monotonicMs } = systemClock;

const stopping = new AbortController();
for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => stopping.abort());

let identity = await waitForIdentity(identityDirectory, stopping.signal);
if (identity !== undefined) {
  const storage = await openImageStorage(config, { uid: config.uid, now, log });
  const keys = sharedKeysOf(storage.secret);
  const tokens = await createAccessTokens(keys.tokens, now);
  const feed = createControllerFeed(listen, log);
  const program = createRegistryProgram({
    ...config,
    storage,
    uploadSecret: keys.uploads,
    neededOf: feed.neededOf,
    now,
    certificate: tokens.certificate,
    environment: process.env,
    log,
  });
  const following = follow(
    feed,
    {
      installationId,
      // Addresses from the feed, and configured ones in case all controllers have moved.
      controllers: () => [...new Set([...feed.controllers, ...config.controllers])],
      identityDirectory,
      random: Math.random,
      log,
    },
    stopping.signal,
  );
  const server = await startRegistryServer({
    listen: endpointsOf(listen),
    identity,
    clients: createClientAddresses(config),
    tokens,
    accessOf: feed.accessOf,
    program,
    usage: createRepositoryUsage(storage.objects, config.organizationBytes, now),
    now,
    monotonicMs,
    log,
  });
  log.info("registry ready", { listen });
  inBackground(log, "images of an earlier release", program.prepare());
  const reloadIdentity = async () => {
    try {
      const next = await readIdentity(identityDirectory);
      if (next === undefined || next.certificate === identity?.certificate) return;
      // Key and certificate are two files: an inconsistent pair is read again after the next change.
      server.setIdentity(next);
      identity = next;
      log.info("certificate reloaded", {});
    } catch (error) {
      log.warn("certificate not reloaded", { error });
    }
  };
  await watchIdentity(identityDirectory, reloadIdentity, stopping.signal);
  await server.close();
  await program.stop();
  await storage.close();
  await following;
}
log.info("registry stopped", {});
