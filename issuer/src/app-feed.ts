import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { reportedListeners } from "@holdfast/common/open-listeners.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { Feed } from "@holdfast/feed/follow.ts";
import { grpcService } from "@holdfast/mtls/grpc-service.ts";
import {
  type AppBatch,
  AppBatchSchema,
  type AppSignIn,
  type FollowRequest,
  FollowRequestSchema,
  IssuerService,
  type MailReportSchema,
  type OwnNetworks,
} from "@holdfast/proto/holdfast/issuer/v1/issuer_pb.ts";
import type { IssuerServer } from "./issuer-server.ts";
import type { StateFile } from "./state-file.ts";

/** Feed of an issuer: all apps, which it also stores on disk for a start without controllers. */
export interface AppFeed extends Feed<FollowRequest, AppBatch> {
  readonly controllers: readonly string[];
  /** Serves the apps stored on disk. */
  restore(): Promise<void>;
  /** Sends a mail report to the connected controller; without one the report is lost. */
  reportMail(mail: MessageInitShape<typeof MailReportSchema>): void;
  readonly isConnected: boolean;
  /** Resolves when the latest state is on disk. */
  flushed(): Promise<void>;
}

interface Deps {
  readonly server: Pick<IssuerServer, "setApp" | "removeApp" | "setPlatformNetworks">;
  readonly file: StateFile;
  readonly certificateRequest: Uint8Array;
  readonly log: Log;
}

export function createAppFeed({ server, file, certificateRequest, log }: Deps): AppFeed {
  const apps = new Map<string, AppSignIn>();
  /** Apps that the current full listing has not contained so far; undefined while no listing is in progress. */
  let unlisted: Set<string> | undefined;
  let controllers: readonly string[] = [];
  let platformNetworks: OwnNetworks | undefined;
  let writing: Promise<void> = Promise.resolve();
  let isWriteQueued = false;
  let send: ((message: FollowRequest) => void) | undefined;

  function setApp(app: AppSignIn): void {
    apps.set(app.appId, app);
    unlisted?.delete(app.appId);
    try {
      server.setApp(app);
    } catch (error) {
      log.error("app not served", { app: app.appId, error: error instanceof Error ? error.message : "unknown" });
    }
  }

  function removeApp(appId: string): void {
    apps.delete(appId);
    server.removeApp(appId);
  }

  function applyBatch(batch: AppBatch): void {
    if (batch.reset) unlisted = new Set(apps.keys());
    if (batch.controllers.length > 0) ({ controllers } = batch);
    if (batch.own !== undefined) {
      platformNetworks = batch.own;
      server.setPlatformNetworks(batch.own);
    }
    for (const app of batch.apps) setApp(app);
    // oxlint-disable-next-line holdfast/names -- a field of the protocol
    for (const appId of batch.gone) removeApp(appId);
    if (!batch.synced) return;
    for (const appId of unlisted ?? []) removeApp(appId);
    unlisted = undefined;
  }

  /** Stores the state: one write at a time, always of the latest state. */
  function save(): void {
    if (isWriteQueued) return;
    isWriteQueued = true;
    writing = writing.then(async () => {
      isWriteQueued = false;
      const state = { reset: true, synced: true, apps: [...apps.values()], controllers: [...controllers] };
      await file
        .write(create(AppBatchSchema, { ...state, ...(platformNetworks !== undefined && { own: platformNetworks }) }))
        .catch((error: unknown) => log.error("apps not stored", { error: String(error) }));
    });
  }

  return {
    method: grpcService(IssuerService).follow,
    firstMessage: () => create(FollowRequestSchema, { certificateRequest, listeners: reportedListeners() }),
    apply(batch, controller) {
      applyBatch(batch);
      save();
      if (batch.reset) log.info("following controller", { controller, apps: apps.size });
      if (!batch.synced) return undefined;
      const served = batch.apps.map(({ appId, version }) => ({ appId, version }));
      return create(FollowRequestSchema, { served });
    },
    onOpen(nextSend) {
      send = nextSend;
    },
    onEnd() {
      send = undefined;
    },
    reportMail: (mail) => send?.(create(FollowRequestSchema, { mail })),
    get isConnected() {
      return send !== undefined;
    },
    get controllers() {
      return controllers;
    },
    async restore() {
      const state = await file.read();
      if (state !== undefined) applyBatch(state);
    },
    flushed: () => writing,
  };
}
