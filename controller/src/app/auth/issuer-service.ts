import { once } from "node:events";
import { create } from "@bufbuild/protobuf";
import { status as Code, type ServerDuplexStream } from "@grpc/grpc-js";
import type { Log } from "@holdfast/common/log.ts";
import type { Authority } from "@holdfast/mtls/authority.ts";
import { grpcService } from "@holdfast/mtls/grpc-service.ts";
import { logRefusal, RpcFailure, requirePeer } from "@holdfast/mtls/rpc-handlers.ts";
import {
  type AppBatch,
  AppBatchSchema,
  type AppSignIn,
  AppSignInSchema,
  type FollowRequest,
  IssuerService,
  type OwnNetworks,
} from "@holdfast/proto/holdfast/issuer/v1/issuer_pb.ts";
import { addressesOf } from "#kernel/runtime/controller-addresses.ts";
import type { ControllerRegistry } from "#kernel/runtime/controller-registry.ts";
import type { ListenerReports } from "#kernel/runtime/listener-reports.ts";
import { createHostCertificates } from "../host-certificates.ts";
import type { RecordMailStatus } from "./mail-status.ts";

export interface IssuerServiceDeps {
  readonly installationId: string;
  /** All served apps; an unchanged app is the same object as before. */
  readonly apps: () => AppSignIn[];
  /** Calls `onChange` whenever `apps` may have changed. */
  readonly subscribe: (onChange: () => void) => { close(): void };
  readonly ready: () => Promise<unknown>;
  readonly own: () => Omit<OwnNetworks, "$typeName" | "$unknown">;
  readonly authority: Pick<Authority, "issueServer">;
  readonly controllerRegistry: Pick<ControllerRegistry, "controllers" | "subscribe">;
  readonly listenerReports: Pick<ListenerReports, "add">;
  /** Records reports of issuers about mails. */
  readonly recordMailStatus: RecordMailStatus;
  readonly now: () => number;
  readonly log: Log;
}

type FollowCall = ServerDuplexStream<FollowRequest, AppBatch>;

/** The last state of an app that was sent to an issuer. */
interface SentApp {
  readonly app: AppSignIn;
  readonly certificate: string;
}

interface Update {
  readonly changed: readonly SentApp[];
  readonly removed: readonly string[];
  readonly own: ReturnType<IssuerServiceDeps["own"]>;
  readonly reset: boolean;
}

const batchApps = 50;
/** Time in which changes are collected into one message. */
const batchDelayMs = 20;
const certificateCheckMs = 60_000;

/** The feed that issuers follow: all apps, with a certificate for each host and the issuer's own key. */
export function createIssuerService(deps: IssuerServiceDeps) {
  const { installationId, controllerRegistry, log } = deps;

  async function follow(call: FollowCall): Promise<void> {
    const issuer = requirePeer(call, installationId, "issuer").identity.id;
    const closed = new AbortController();
    call.on("cancelled", () => closed.abort()).on("end", () => closed.abort());
    const firstRequest = Promise.withResolvers<FollowRequest>();
    let release: (() => void) | undefined;
    call.on("data", (request: FollowRequest) => {
      firstRequest.resolve(request);
      if (request.listeners.length > 0) release ??= deps.listenerReports.add(`issuer ${issuer}`, request.listeners);
      if (request.mail === undefined) return;
      deps
        .recordMailStatus(request.mail)
        .catch((error: unknown) => log.warn("mail report not recorded", { error: String(error) }));
    });
    closed.signal.addEventListener("abort", () => firstRequest.reject(new RpcFailure(Code.CANCELLED, "ended")), {
      once: true,
    });
    const { certificateRequest } = await firstRequest.promise;
    await deps.ready();
    log.info("issuer connected", { issuer });

    const certificates = createHostCertificates(certificateRequest, deps);
    /** The last sent state of each app, by id. */
    const sentApps = new Map<string, SentApp>();
    let isFirst = true;
    let sentOwn = "";
    let wake = Promise.withResolvers<void>();
    const wakeUp = () => wake.resolve();
    const watches = [deps.subscribe(wakeUp), controllerRegistry.subscribe(wakeUp)];
    const timer = setInterval(wakeUp, certificateCheckMs);
    closed.signal.addEventListener("abort", wakeUp, { once: true });

    const certified = async (app: AppSignIn): Promise<SentApp> => ({
      app,
      certificate: await certificates.chainOf(app.host),
    });

    try {
      while (!closed.signal.aborted) {
        const apps = new Map((await Promise.all(deps.apps().map(certified))).map((each) => [each.app.appId, each]));
        const changed = [...apps.values()].filter((each) => {
          const before = sentApps.get(each.app.appId);
          return before?.app !== each.app || before.certificate !== each.certificate;
        });
        const removed = [...sentApps.keys()].filter((appId) => !apps.has(appId));
        const own = deps.own();
        const ownText = JSON.stringify(own);
        if (isFirst || changed.length > 0 || removed.length > 0 || ownText !== sentOwn)
          await send(call, { changed, removed, own, reset: isFirst }, closed.signal);
        sentOwn = ownText;
        isFirst = false;
        sentApps.clear();
        for (const [appId, each] of apps) sentApps.set(appId, each);
        await wake.promise;
        await new Promise((resolve) => setTimeout(resolve, batchDelayMs));
        wake = Promise.withResolvers();
      }
    } finally {
      clearInterval(timer);
      for (const watch of watches) watch.close();
      release?.();
      log.info("issuer disconnected", { issuer });
    }
    call.end();
  }

  async function send(call: FollowCall, { changed, removed, own, reset }: Update, signal: AbortSignal): Promise<void> {
    for (let at = 0; at === 0 || at < changed.length; at += batchApps) {
      const isFirst = at === 0;
      const batch = create(AppBatchSchema, {
        reset: reset && isFirst,
        synced: at + batchApps >= changed.length,
        apps: changed
          .slice(at, at + batchApps)
          .map(({ app, certificate }) => create(AppSignInSchema, { ...app, certificate })),
        // oxlint-disable-next-line holdfast/names -- a field of the proto
        gone: isFirst ? [...removed] : [],
        controllers: isFirst ? addressesOf(controllerRegistry) : [],
        ...(isFirst && { own }),
      });
      if (!call.write(batch)) await once(call, "drain", { signal });
    }
  }

  return {
    definition: grpcService(IssuerService),
    implementation: {
      follow(call: FollowCall) {
        call.on("error", () => undefined);
        follow(call).catch((error: unknown) => {
          if (call.cancelled) return;
          logRefusal(log, "Follow", call, error);
          const failure = error instanceof RpcFailure ? error : new RpcFailure(Code.UNAVAILABLE, "ended");
          call.emit("error", failure.status);
        });
      },
    },
  };
}
