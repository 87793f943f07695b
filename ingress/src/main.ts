import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { inBackground } from "@holdfast/common/background.ts";
import { systemClock } from "@holdfast/common/clock.ts";
import { readConfig } from "@holdfast/common/config.ts";
import { createLog } from "@holdfast/common/log.ts";
import { watchProcessFaults } from "@holdfast/common/process-faults.ts";
import { follow } from "@holdfast/feed/follow.ts";
import { openHostKey } from "@holdfast/feed/host-key.ts";
import { readIdentity, waitForIdentity, watchIdentity } from "@holdfast/feed/identity-directory.ts";
import { ingressSettings } from "./config.ts";
import { createHaproxy, haproxyFilesBelow, loginSocketBelow } from "./haproxy.ts";
import { createIngress } from "./ingress.ts";
import { startLoginServer } from "./login-server.ts";
import { createRouteFeed } from "./route-feed.ts";
import { openRoutesFile } from "./routes-file.ts";

const config = readConfig(ingressSettings, process.env);
const log = createLog("ingress");
watchProcessFaults({ role: "server", logFault: log.error, monotonicMs: systemClock.monotonicMs });
const { listen, identityDirectory, installationId } = config;

const stopping = new AbortController();
for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => stopping.abort());

const first = await waitForIdentity(identityDirectory, stopping.signal);
if (first !== undefined) {
  let identity = first;
  const file = await openRoutesFile(config.directory, log);
  const directory = join(config.directory, "haproxy");
  const { privateKey: hostKey, request: certificateRequest } = await openHostKey(config.directory);
  const feed = createRouteFeed({ listen, hostKey, certificateRequest, onChange: () => routesChanged(), log });
  const haproxy = createHaproxy({
    ...config,
    directory,
    hostKey,
    environment: process.env,
    onEnd: () => ingress.changed(),
    log,
  });
  const ingress = createIngress({
    haproxy,
    files: haproxyFilesBelow(directory, hostKey),
    routes: () => feed.routes,
    certificate: () => identity,
    startsWithoutRoutes: config.challengesServer !== "",
    delay: (ms, signal) => delay(ms, undefined, { signal }).catch(() => undefined),
    random: Math.random,
    log,
  });

  let writing: Promise<void> = Promise.resolve();
  const routesChanged = () => {
    ingress.changed();
    writing = writing
      .then(() => file.write({ routes: [...feed.routes.values()], controllers: [...feed.controllers] }))
      .catch((error: unknown) => log.error("routes not stored", { error }));
  };
  const stored = await file.read();
  if (stored !== undefined) feed.restore(stored);

  await mkdir(directory, { recursive: true, mode: 0o755 });
  const loginServer = await startLoginServer({
    socket: loginSocketBelow(directory),
    uid: process.getuid?.() === 0 ? config.uid : undefined,
    routeOf: (appId) => feed.routes.get(appId),
    clock: systemClock,
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
  const reloadIdentity = async () => {
    try {
      const next = await readIdentity(identityDirectory);
      if (next === undefined || next.certificate === identity.certificate) return;
      identity = next;
      ingress.changed();
      log.info("certificate reloaded", {});
    } catch (error) {
      log.warn("certificate not reloaded", { error });
    }
  };
  inBackground(log, "watch of the certificate", watchIdentity(identityDirectory, reloadIdentity, stopping.signal));
  log.info("ingress ready", { listen });
  await ingress.run(stopping.signal);
  await loginServer.close();
  await following;
  await writing;
}
log.info("ingress stopped", {});
