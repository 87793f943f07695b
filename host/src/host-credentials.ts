import { X509Certificate } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { createBackOff } from "@holdfast/common/back-off.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { parseIdentity } from "@holdfast/common/identity.ts";
import type { Log } from "@holdfast/common/log.ts";
import { createKeyWithRequest } from "@holdfast/mtls/certificate-request.ts";
import { createControllerEndpoints } from "@holdfast/mtls/controller-endpoints.ts";
import { createIdentityFile, renewalTime } from "@holdfast/mtls/machine-identity.ts";
import { confirmHost, type HostIdentity, renewHost } from "./host-calls.ts";

export interface HostCredentialsDeps {
  /** State directory that joinHost wrote. */
  readonly stateDir: string;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
}

/** ControllerHello of a controller that begins to follow the host. */
export interface ControllerHello {
  /** host:port of every controller. */
  readonly controllers: readonly string[];
  /** Current generation of the authorities. */
  readonly authorityGeneration: number;
}

/** The host's certificate, from its join through every renewal. */
export interface HostCredentials {
  readonly hostId: string;
  readonly installationId: string;
  readonly current: Pick<HostIdentity, "privateKey" | "certificate" | "trustBundle">;
  /** Calls back with each new certificate, which may bring new authorities to trust. */
  subscribe(onChange: () => void): { close(): void };
  applyHello(hello: ControllerHello): void;
  close(): void;
}

const maxWaitMs = 3_600_000;
/** Certificates that last seconds, as in tests, must not cause a busy loop. */
const minWaitMs = 200;

/** Throws if the directory has no host identity. */
export async function openHostCredentials(deps: HostCredentialsDeps): Promise<HostCredentials> {
  const { stateDir, clock, random, log } = deps;
  const file = createIdentityFile(stateDir);
  const controllers = createControllerEndpoints(stateDir, []);
  await controllers.load();
  const loaded = await file.load();
  if (loaded === undefined) throw new Error(`${stateDir} has no certificate: the host has not joined yet`);
  let identity: HostIdentity = loaded;
  const { installationId } = identity;
  const hostId = hostIn(identity);
  const listeners = new Set<() => void>();
  const closing = new AbortController();
  let wake = new AbortController();
  /** Newest generation of the authorities that a controller announced. */
  let generation = identity.authorityGeneration;
  let confirmed = false;

  function dueInMs(): number {
    if (!confirmed || generation > identity.authorityGeneration) return 0;
    return Math.min(Math.max(renewalTime(identity) - clock.now(), minWaitMs), maxWaitMs);
  }

  async function confirmOrRenew(): Promise<void> {
    const address = controllers.next();
    if (!confirmed) {
      await confirmHost(identity, address);
      confirmed = true;
      return;
    }
    if (generation <= identity.authorityGeneration && clock.now() < renewalTime(identity)) return;
    const renewed = await renewHost(identity, createKeyWithRequest(), address, clock.now);
    await file.save(renewed);
    identity = renewed;
    confirmed = false;
    log.info("host certificate renewed", { notAfter: new Date(identity.notAfter).toISOString() });
    for (const listener of listeners) listener();
  }

  async function maintain(): Promise<void> {
    const backOff = createBackOff(200, 30_000, random);
    while (!closing.signal.aborted) {
      wake = new AbortController();
      const signal = AbortSignal.any([closing.signal, wake.signal]);
      let waitMs = 0;
      try {
        await confirmOrRenew();
        backOff.reset();
        waitMs = dueInMs();
      } catch (error) {
        waitMs = backOff.nextMs();
        const reason = error instanceof Error ? error.message : String(error);
        const fields = { reason, notAfter: new Date(identity.notAfter).toISOString() };
        if (clock.now() > identity.notAfter)
          log.error("host certificate has expired; join again with a new file", fields);
        else log.warn("host certificate not renewed", fields);
      }
      if (waitMs > 0) await sleep(waitMs, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }
  maintain().catch((error: unknown) => log.error("host certificate not renewed", { error }));

  return {
    hostId,
    installationId,
    get current() {
      return identity;
    },
    subscribe(onChange) {
      listeners.add(onChange);
      return {
        close: () => {
          listeners.delete(onChange);
        },
      };
    },
    applyHello(hello) {
      controllers.save(hello.controllers).catch((error: unknown) => {
        log.warn("controllers not stored on disk", { reason: error instanceof Error ? error.message : String(error) });
      });
      if (hello.authorityGeneration <= generation) return;
      generation = hello.authorityGeneration;
      wake.abort();
    },
    close: () => closing.abort(),
  };
}

/** Host id in the certificate. */
function hostIn({ certificate, installationId }: HostIdentity): string {
  const found = parseIdentity(new X509Certificate(certificate).subjectAltName, installationId);
  if (found?.kind !== "host") throw new Error("the certificate is not a host certificate");
  return found.id;
}
