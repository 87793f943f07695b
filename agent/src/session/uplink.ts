import { setTimeout as sleep } from "node:timers/promises";
import { inBackground } from "@holdfast/common/background.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { Hello, Welcome } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { createBackOff } from "@holdfast/common/back-off.ts";
import { type ControllerChannel, createControllerChannel } from "@holdfast/mtls/controller-channel.ts";
import { createKnownControllers } from "@holdfast/mtls/known-controllers.ts";
import { createMachineCredentials } from "./machine-credentials.ts";
import { createWelcomeTimeout } from "./welcome-timeout.ts";
import { type OutgoingFrame, openSession, type Session, type SessionHandlers } from "./session.ts";

/** The machine's way to the controllers, whichever of them it is that listens. */
export interface Uplink {
  /** False when no controller is there to take it. */
  send(frame: OutgoingFrame): boolean;
  /** The current connection, for calls of their own; undefined when there is none. */
  channel(): ControllerChannel | undefined;
  /** Resolves with a connection as soon as there is one. */
  connected(signal: AbortSignal): Promise<ControllerChannel>;
  /** Of the authorities by which the machine's certificate was issued; 0 without one. */
  readonly authorityGeneration: number;
  /** A session that ends is not followed by another one, until it goes on. */
  pause(): void;
  goOn(): void;
  /** Keeps a session open until the signal. */
  run(signal: AbortSignal): Promise<void>;
}

export interface UplinkDeps {
  readonly stateDir: string;
  /** Controllers to dial besides those of the enrollment. */
  readonly controllers: readonly string[];
  /** A connection that is there already, for the first session. */
  readonly ready?: ControllerChannel | undefined;
  readonly hello: () => Hello;
  readonly handlers: Omit<SessionHandlers, "onNews" | "onRedirect">;
  /** A controller took over: what it may not know yet is to be sent again. */
  readonly onOpen: (session: Session) => void;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
}

/** What follows a session: the next one at once, with this controller if one is named, or after a pause. */
type Next = { readonly at: "once"; readonly address?: string } | { readonly at: "ease" };

const firstDelayMs = 100;
const longestDelayMs = 5_000;
/** Certificates of seconds, in tests, must not spin. */
const shortestRenewalMs = 200;
const longestTimerMs = 2 ** 31 - 1;
/** New authorities are news to all machines at once; their requests come spread over this time. */
const authoritySpreadMs = 5_000;

export function createUplink(deps: UplinkDeps): Uplink {
  const { stateDir, hello, handlers, onOpen, clock, random, log } = deps;
  const credentials = createMachineCredentials(stateDir, clock.now, log);
  const controllers = createKnownControllers(stateDir, deps.controllers);
  const backOff = createBackOff(firstDelayMs, longestDelayMs, random);
  const welcomeTimeout = createWelcomeTimeout();
  const waiting = new Set<(channel: ControllerChannel) => void>();
  let current: Session | undefined;
  let { ready } = deps;
  let unpaused: PromiseWithResolvers<void> | undefined;
  let newAuthorities = new AbortController();
  let redirect = Promise.withResolvers<string>();
  /** When to renew for newer authorities; undefined when there are none. */
  let authoritiesDueAt: number | undefined;

  async function open(preferred: string | undefined): Promise<Session> {
    controllers.learn((await credentials.enrollment())?.controllers ?? []);
    const address = preferred ?? ready?.address ?? controllers.next();
    const { privateKey, certificate, trustBundle, installationId } = await credentials.identify(address);
    const channel =
      ready ??
      createControllerChannel(address, {
        trustBundle,
        installationId,
        client: { privateKey, certificate },
      });
    ready = undefined;
    try {
      const session = await openSession(
        channel,
        hello(),
        { ...handlers, onNews, onRedirect },
        clock.monotonicMs,
        welcomeTimeout.ms,
      );
      welcomeTimeout.welcomed();
      inBackground(
        log,
        "end of a session",
        session.ended.then(() => channel.close()),
      );
      return session;
    } catch (error) {
      channel.close();
      welcomeTimeout.failed();
      throw error;
    }
  }

  function onNews(welcome: Welcome): void {
    if (welcome.withoutLease) log.info("the controller has no lease for now", { controller: welcome.controllerId });
    noteAuthorities(welcome);
    controllers.keep(welcome.controllers).catch((error: unknown) => {
      log.warn("controllers not kept on disk", { reason: error instanceof Error ? error.message : String(error) });
    });
  }

  function onRedirect(controller: string): void {
    log.info("session goes to another controller", { address: controller });
    redirect.resolve(controller);
  }

  function noteAuthorities({ authorityGeneration }: Welcome): void {
    if (Number(authorityGeneration) <= credentials.authorityGeneration) return;
    authoritiesDueAt ??= clock.now() + random() * authoritySpreadMs;
    newAuthorities.abort();
  }

  /** The session of before, if any, ends only now that the new one was welcomed. */
  async function adopt(session: Session): Promise<void> {
    const before = current;
    current = session;
    redirect = Promise.withResolvers();
    before?.retire();
    backOff.reset();
    log.info("session opened", { controller: session.welcome.controllerId, address: session.channel.address });
    noteAuthorities(session.welcome);
    onOpen(session);
    for (const resolve of waiting) resolve(session.channel);
    waiting.clear();
    await controllers.keep(session.welcome.controllers);
  }

  /**
   * Resolves when the session is over, or when it is time for one with another controller, or with the certificate that
   * replaced this one's.
   */
  async function hold(session: Session, signal: AbortSignal): Promise<Next> {
    const done = new AbortController();
    const stop = AbortSignal.any([signal, done.signal]);
    const over = session.ended.then((end): Next => {
      controllers.learn(end.controllers);
      welcomeTimeout.lost(session.fleetReturnMs);
      if (current === session) current = undefined;
      if (!signal.aborted) log.info("session ended", { reason: end.reason });
      return { at: end.controllers.length > 0 ? "once" : "ease" };
    });
    try {
      const elsewhere = redirect.promise.then((address): Next => ({ at: "once", address }));
      return await Promise.race([over, elsewhere, renewed(session, stop)]);
    } finally {
      done.abort();
    }
  }

  const renewalAt = () => Math.min(credentials.renewalAt ?? 0, authoritiesDueAt ?? Number.POSITIVE_INFINITY);

  async function renewed(session: Session, stop: AbortSignal): Promise<Next> {
    for (;;) {
      newAuthorities = new AbortController();
      const dueMs = Math.min(Math.max(renewalAt() - clock.now(), shortestRenewalMs), longestTimerMs);
      await sleep(dueMs, undefined, { signal: AbortSignal.any([stop, newAuthorities.signal]) }).catch(() => undefined);
      stop.throwIfAborted();
      if (renewalAt() > clock.now()) continue;
      const { endsAt } = credentials;
      try {
        await credentials.renew(session.channel);
        authoritiesDueAt = undefined;
      } catch (error) {
        log.warn("certificate not renewed", { reason: (error as Error).message });
        await sleep(Math.max(1_000, (endsAt - clock.now()) / 20), undefined, { signal: stop });
        continue;
      }
      return { at: "once", address: session.channel.address };
    }
  }

  return {
    send(frame) {
      current?.send(frame);
      return current !== undefined;
    },
    channel: () => current?.channel,
    get authorityGeneration() {
      return credentials.authorityGeneration;
    },
    connected(signal) {
      if (current !== undefined) return Promise.resolve(current.channel);
      return new Promise((resolve, reject) => {
        waiting.add(resolve);
        signal.addEventListener("abort", () => {
          waiting.delete(resolve);
          reject(signal.reason);
        });
      });
    },
    pause() {
      unpaused ??= Promise.withResolvers();
    },
    goOn() {
      unpaused?.resolve();
      unpaused = undefined;
    },
    async run(signal) {
      signal.addEventListener("abort", () => unpaused?.resolve(), { once: true });
      await controllers.load();
      let next: Next = { at: "once" };
      while (!signal.aborted) {
        try {
          const session = await open(next.at === "once" ? next.address : undefined);
          await adopt(session);
          next = await hold(session, signal);
        } catch (error) {
          if (signal.aborted) break;
          log.warn("no session", { reason: (error as Error).message });
          next = { at: "ease" };
        }
        await unpaused?.promise;
        if (next.at === "ease") await sleep(backOff.nextMs(), undefined, { signal }).catch(() => undefined);
      }
      current?.close();
      current = undefined;
    },
  };
}
