import { setTimeout as sleep } from "node:timers/promises";
import { inBackground } from "@holdfast/common/background.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { Hello, Welcome } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { createBackOff } from "@holdfast/common/back-off.ts";
import { type ControllerChannel, createControllerChannel } from "@holdfast/mtls/controller-channel.ts";
import { createControllerEndpoints } from "@holdfast/mtls/controller-endpoints.ts";
import { createMachineCredentials } from "./machine-credentials.ts";
import { createWelcomeTimeout } from "./welcome-timeout.ts";
import { type OutgoingFrame, openSession, type Session, type SessionHandlers } from "./session.ts";

/**
 * Keeps a session with one of the controllers, and replaces it when it ends, when the controller redirects the agent,
 * and when the certificate is renewed.
 */
export interface Uplink {
  /** False if no controller is connected. */
  send(frame: OutgoingFrame): boolean;
  /** The current connection, for unary calls; undefined without one. */
  channel(): ControllerChannel | undefined;
  /** Resolves once there is a connection. */
  connected(signal: AbortSignal): Promise<ControllerChannel>;
  /** Generation of the authorities that issued the machine's certificate; 0 without one. */
  readonly authorityGeneration: number;
  /** Opens no new session until `resume`; the current one remains open. */
  pause(): void;
  resume(): void;
  /** Runs until the signal. */
  run(signal: AbortSignal): Promise<void>;
}

export interface UplinkDeps {
  readonly stateDir: string;
  /** Controllers to dial in addition to the controllers of the enrollment, host:port each. */
  readonly controllers: readonly string[];
  /** An existing connection, used for the first session. */
  readonly initialChannel?: ControllerChannel | undefined;
  readonly hello: () => Hello;
  readonly handlers: Omit<SessionHandlers, "onWelcomeUpdate" | "onRedirect">;
  /** Called for each new session. Anything that its controller may have missed is to be sent again. */
  readonly onOpen: (session: Session) => void;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
}

/** The next session: one started immediately, with this controller if one is named, or one after the back-off. */
type Next = { readonly when: "now"; readonly address?: string } | { readonly when: "after_back_off" };

const firstDelayMs = 100;
const maxDelayMs = 5_000;
/** Lower bound, since tests use certificates that last seconds. */
const minRenewalMs = 200;
const maxTimerMs = 2 ** 31 - 1;
/** Period over which machines spread their renewals after new authorities, which all machines get simultaneously. */
const authoritySpreadMs = 5_000;

export function createUplink(deps: UplinkDeps): Uplink {
  const { stateDir, hello, handlers, onOpen, clock, random, log } = deps;
  const credentials = createMachineCredentials(stateDir, clock.now, log);
  const controllers = createControllerEndpoints(stateDir, deps.controllers);
  const backOff = createBackOff(firstDelayMs, maxDelayMs, random);
  const welcomeTimeout = createWelcomeTimeout();
  const waiting = new Set<(channel: ControllerChannel) => void>();
  let current: Session | undefined;
  let { initialChannel } = deps;
  let unpaused: PromiseWithResolvers<void> | undefined;
  let newAuthorities = new AbortController();
  let redirect = Promise.withResolvers<string>();
  /** Time at which to renew for newer authorities; undefined without newer ones. */
  let authoritiesDueAt: number | undefined;

  async function open(preferred: string | undefined): Promise<Session> {
    controllers.add((await credentials.enrollment())?.controllers ?? []);
    const address = preferred ?? initialChannel?.address ?? controllers.next();
    const { privateKey, certificate, trustBundle, installationId } = await credentials.identify(address);
    const channel =
      initialChannel ??
      createControllerChannel(address, {
        trustBundle,
        installationId,
        client: { privateKey, certificate },
      });
    initialChannel = undefined;
    try {
      const session = await openSession(
        channel,
        hello(),
        { ...handlers, onWelcomeUpdate, onRedirect },
        clock.monotonicMs,
        welcomeTimeout.ms,
      );
      welcomeTimeout.welcomed();
      inBackground(
        log,
        "closing the channel of an ended session",
        session.ended.then(() => channel.close()),
      );
      return session;
    } catch (error) {
      channel.close();
      welcomeTimeout.failed();
      throw error;
    }
  }

  function onWelcomeUpdate(welcome: Welcome): void {
    if (welcome.withoutLease) log.info("controller runs without its etcd lease", { controller: welcome.controllerId });
    noteAuthorities(welcome);
    controllers.save(welcome.controllers).catch((error: unknown) => {
      log.warn("controllers not saved", { reason: error instanceof Error ? error.message : String(error) });
    });
  }

  function onRedirect(controller: string): void {
    log.info("session moves to another controller", { address: controller });
    redirect.resolve(controller);
  }

  function noteAuthorities({ authorityGeneration }: Welcome): void {
    if (Number(authorityGeneration) <= credentials.authorityGeneration) return;
    authoritiesDueAt ??= clock.now() + random() * authoritySpreadMs;
    newAuthorities.abort();
  }

  /** The previous session ends only after the new one is welcomed. */
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
    await controllers.save(session.welcome.controllers);
  }

  /** Resolves when the session ends, when the controller redirects the agent, or when the certificate was renewed. */
  async function follow(session: Session, signal: AbortSignal): Promise<Next> {
    const done = new AbortController();
    const stop = AbortSignal.any([signal, done.signal]);
    const ended = session.ended.then((end): Next => {
      controllers.add(end.controllers);
      welcomeTimeout.lost(session.fleetReturnMs);
      if (current === session) current = undefined;
      if (!signal.aborted) log.info("session ended", { reason: end.reason });
      return { when: end.controllers.length > 0 ? "now" : "after_back_off" };
    });
    try {
      const elsewhere = redirect.promise.then((address): Next => ({ when: "now", address }));
      return await Promise.race([ended, elsewhere, renewed(session, stop)]);
    } finally {
      done.abort();
    }
  }

  const renewalAt = () => Math.min(credentials.renewalAt ?? 0, authoritiesDueAt ?? Number.POSITIVE_INFINITY);

  async function renewed(session: Session, stop: AbortSignal): Promise<Next> {
    for (;;) {
      newAuthorities = new AbortController();
      const dueMs = Math.min(Math.max(renewalAt() - clock.now(), minRenewalMs), maxTimerMs);
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
      return { when: "now", address: session.channel.address };
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
    resume() {
      unpaused?.resolve();
      unpaused = undefined;
    },
    async run(signal) {
      signal.addEventListener("abort", () => unpaused?.resolve(), { once: true });
      await controllers.load();
      let next: Next = { when: "now" };
      while (!signal.aborted) {
        try {
          const session = await open(next.when === "now" ? next.address : undefined);
          await adopt(session);
          next = await follow(session, signal);
        } catch (error) {
          if (signal.aborted) break;
          log.warn("no session", { reason: (error as Error).message });
          next = { when: "after_back_off" };
        }
        await unpaused?.promise;
        if (next.when === "after_back_off") await sleep(backOff.nextMs(), undefined, { signal }).catch(() => undefined);
      }
      current?.close();
      current = undefined;
    },
  };
}
