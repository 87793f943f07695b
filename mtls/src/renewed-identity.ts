import type { Clock } from "@holdfast/common/clock.ts";
import type { Identity } from "@holdfast/common/identity.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { IssuingAuthority, KeyWithCertificate } from "./authority.ts";

export interface RenewedIdentityDeps {
  readonly authority: IssuingAuthority;
  readonly identity: Identity;
  /** DNS names and IP addresses of the listener: host of base_url, localhost, 127.0.0.1. */
  readonly names: readonly string[];
  readonly addresses: readonly string[];
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * A certificate for a listener of this process that renews itself: after two thirds of its lifetime, and if the wall
 * clock was set back to before its start.
 */
export interface RenewedIdentity {
  readonly current: KeyWithCertificate;
  /** Calls back with each new certificate, and when the trust bundle changes. */
  subscribe(onChange: (renewed: KeyWithCertificate) => void): { close(): void };
  close(): void;
}

/** Bound on the time until a clock that was set back, for example after boot, is noticed. */
const maxWaitMs = 60_000;
const retryMs = 5_000;

export async function createRenewedIdentity(deps: RenewedIdentityDeps): Promise<RenewedIdentity> {
  const { authority, identity, names, addresses, clock, log } = deps;
  const listeners = new Set<(renewed: KeyWithCertificate) => void>();
  const issue = () => authority.createIdentity(identity, names, addresses);
  let current = await issue();
  let renewAt = renewalOf(current);
  let timer = schedule();
  let closed = false;

  function renewalOf(issued: KeyWithCertificate): number {
    const now = clock.now();
    return now + ((issued.notAfter.getTime() - now) * 2) / 3;
  }

  function schedule(afterMs = Math.min(Math.max(renewAt - clock.now(), 100), maxWaitMs)) {
    const waiting = setTimeout(renewWhenDue, afterMs);
    waiting.unref();
    return waiting;
  }

  function renewWhenDue(): void {
    const now = clock.now();
    if (now >= renewAt || now < current.notBefore.getTime()) renew().catch(failed);
    else timer = schedule();
  }

  async function renew(): Promise<void> {
    current = await issue();
    renewAt = renewalOf(current);
    log.info("certificate renewed", { identity: identity.id, notAfter: current.notAfter.toISOString() });
    for (const listener of listeners) listener(current);
    if (closed) return;
    clearTimeout(timer);
    timer = schedule();
  }

  function failed(error: unknown): void {
    log.error("certificate not renewed", { identity: identity.id, error });
    if (!closed) timer = schedule(retryMs);
  }

  const authorityChanges = authority.subscribe(() => {
    renew().catch(failed);
  });
  return {
    get current() {
      return current;
    },
    subscribe(onChange) {
      listeners.add(onChange);
      return {
        close: () => {
          listeners.delete(onChange);
        },
      };
    },
    close() {
      closed = true;
      clearTimeout(timer);
      authorityChanges.close();
    },
  };
}
