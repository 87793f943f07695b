import { once } from "node:events";
import { create } from "@bufbuild/protobuf";
import { status as Code, type ServerDuplexStream } from "@grpc/grpc-js";
import type { Authority } from "@holdfast/mtls/authority.ts";
import type { Log } from "@holdfast/common/log.ts";
import { grpcService } from "@holdfast/mtls/grpc-service.ts";
import { pemOf } from "@holdfast/mtls/pem.ts";
import { logRefusal, requirePeer } from "@holdfast/mtls/rpc-handlers.ts";
import { RpcFailure } from "@holdfast/mtls/rpc-status.ts";
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
import type { ListenerReports } from "#kernel/runtime/listener-reports.ts";
import type { Membership } from "#kernel/runtime/membership.ts";
import type { HearOfMails } from "./mail-health.ts";

export interface IssuerServiceDeps {
  readonly installationId: string;
  /** Every app that is served now; the same object for as long as nothing of it changed. */
  readonly apps: () => AppSignIn[];
  /** Calls back when `apps` may answer something else. */
  readonly subscribe: (onChange: () => void) => { close(): void };
  readonly ready: () => Promise<unknown>;
  readonly own: () => Omit<OwnNetworks, "$typeName" | "$unknown">;
  readonly authority: Pick<Authority, "issueServer">;
  readonly membership: Pick<Membership, "members" | "subscribe">;
  readonly listenerReports: Pick<ListenerReports, "add">;
  /** What issuers say of mails. */
  readonly hearOfMails: HearOfMails;
  readonly now: () => number;
  readonly log: Log;
}

type FollowCall = ServerDuplexStream<FollowRequest, AppBatch>;

interface HostCertificate {
  readonly chain: string;
  readonly renewAt: number;
}

/** An app as an issuer has it. */
interface Told {
  readonly app: AppSignIn;
  readonly certificate: string;
}

interface News {
  readonly news: readonly Told[];
  readonly gone: readonly string[];
  readonly own: ReturnType<IssuerServiceDeps["own"]>;
  readonly reset: boolean;
}

const batchApps = 50;
/** Changes that come together are told together. */
const gatherMs = 20;
const lookAtCertificatesMs = 60_000;

/** IssuerService for issuers: each follows all apps, with a certificate for each host and its own key. */
export function createIssuerService(deps: IssuerServiceDeps) {
  const { installationId, authority, membership, now, log } = deps;

  async function follow(call: FollowCall): Promise<void> {
    const issuer = requirePeer(call, installationId, "issuer").identity.id;
    const over = new AbortController();
    call.on("cancelled", () => over.abort()).on("end", () => over.abort());
    const greeting = Promise.withResolvers<FollowRequest>();
    let release: (() => void) | undefined;
    call.on("data", (request: FollowRequest) => {
      greeting.resolve(request);
      if (request.listeners.length > 0) release ??= deps.listenerReports.add(`issuer ${issuer}`, request.listeners);
      if (request.mail === undefined) return;
      deps
        .hearOfMails(request.mail)
        .catch((error: unknown) => log.warn("mails not heard of", { error: String(error) }));
    });
    over.signal.addEventListener("abort", () => greeting.reject(new RpcFailure(Code.CANCELLED, "ended")), {
      once: true,
    });
    const { certificateRequest } = await greeting.promise;
    await deps.ready();
    log.info("issuer follows", { issuer });

    const certificates = new Map<string, HostCertificate>();
    /** What the issuer has of each app. */
    const told = new Map<string, Told>();
    let isFirst = true;
    let sentOwn = "";
    let wake = Promise.withResolvers<void>();
    const woken = () => wake.resolve();
    const watches = [deps.subscribe(woken), membership.subscribe(woken)];
    const timer = setInterval(woken, lookAtCertificatesMs);
    over.signal.addEventListener("abort", woken, { once: true });

    async function certified(app: AppSignIn): Promise<Told> {
      let held = certificates.get(app.host);
      if (held === undefined || held.renewAt <= now()) {
        const { chain, notBefore, notAfter } = await authority.issueServer(certificateRequest, [app.host]);
        const lifeMs = notAfter.getTime() - notBefore.getTime();
        held = { chain: pemOf(chain), renewAt: notBefore.getTime() + (lifeMs * 2) / 3 };
        certificates.set(app.host, held);
      }
      return { app, certificate: held.chain };
    }

    try {
      while (!over.signal.aborted) {
        const apps = new Map((await Promise.all(deps.apps().map(certified))).map((each) => [each.app.appId, each]));
        const news = [...apps.values()].filter((each) => {
          const before = told.get(each.app.appId);
          return before?.app !== each.app || before.certificate !== each.certificate;
        });
        const gone = [...told.keys()].filter((appId) => !apps.has(appId));
        const own = deps.own();
        const ownText = JSON.stringify(own);
        if (isFirst || news.length > 0 || gone.length > 0 || ownText !== sentOwn)
          await send(call, { news, gone, own, reset: isFirst }, over.signal);
        sentOwn = ownText;
        isFirst = false;
        told.clear();
        for (const [appId, each] of apps) told.set(appId, each);
        await wake.promise;
        await new Promise((resolve) => setTimeout(resolve, gatherMs));
        wake = Promise.withResolvers();
      }
    } finally {
      clearInterval(timer);
      for (const watch of watches) watch.close();
      release?.();
      log.info("issuer gone", { issuer });
    }
    call.end();
  }

  async function send(call: FollowCall, { news, gone, own, reset }: News, signal: AbortSignal): Promise<void> {
    for (let at = 0; at === 0 || at < news.length; at += batchApps) {
      const isFirst = at === 0;
      const batch = create(AppBatchSchema, {
        reset: reset && isFirst,
        synced: at + batchApps >= news.length,
        apps: news
          .slice(at, at + batchApps)
          .map(({ app, certificate }) => create(AppSignInSchema, { ...app, certificate })),
        gone: isFirst ? [...gone] : [],
        controllers: isFirst ? addressesOf(membership) : [],
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
