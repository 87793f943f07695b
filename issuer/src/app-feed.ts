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

/** Every app as an issuer follows it, kept on disk for a start without controllers. */
export interface AppFeed extends Feed<FollowRequest, AppBatch> {
  readonly controllers: readonly string[];
  /** Serves what was served last. */
  restore(): Promise<void>;
  /** Tells the controller that it follows; what is said while there is none is lost. */
  tell(mail: MessageInitShape<typeof MailReportSchema>): void;
  readonly isConnected: boolean;
  /** Resolves when the newest state is on disk. */
  settled(): Promise<void>;
}

interface Deps {
  readonly server: Pick<IssuerServer, "hold" | "release" | "setOwn">;
  readonly file: StateFile;
  readonly certificateRequest: Uint8Array;
  readonly log: Log;
}

export function createAppFeed({ server, file, certificateRequest, log }: Deps): AppFeed {
  const apps = new Map<string, AppSignIn>();
  /** Apps that a new listing has not named yet. */
  let unseen: Set<string> | undefined;
  let controllers: readonly string[] = [];
  let own: OwnNetworks | undefined;
  let writing: Promise<void> = Promise.resolve();
  let isOutdated = false;
  let send: ((message: FollowRequest) => void) | undefined;

  function hold(app: AppSignIn): void {
    apps.set(app.appId, app);
    unseen?.delete(app.appId);
    try {
      server.hold(app);
    } catch (error) {
      log.error("app not served", { app: app.appId, error: error instanceof Error ? error.message : "unknown" });
    }
  }

  function release(appId: string): void {
    apps.delete(appId);
    server.release(appId);
  }

  function take(batch: AppBatch): void {
    if (batch.reset) unseen = new Set(apps.keys());
    if (batch.controllers.length > 0) ({ controllers } = batch);
    if (batch.own !== undefined) {
      own = batch.own;
      server.setOwn(batch.own);
    }
    for (const app of batch.apps) hold(app);
    for (const appId of batch.gone) release(appId);
    if (!batch.synced) return;
    for (const appId of unseen ?? []) release(appId);
    unseen = undefined;
  }

  /** One write at a time, always of the newest. */
  function keep(): void {
    if (isOutdated) return;
    isOutdated = true;
    writing = writing.then(async () => {
      isOutdated = false;
      const state = { reset: true, synced: true, apps: [...apps.values()], controllers: [...controllers] };
      await file
        .write(create(AppBatchSchema, { ...state, ...(own !== undefined && { own }) }))
        .catch((error: unknown) => log.error("apps not kept", { error: String(error) }));
    });
  }

  return {
    method: grpcService(IssuerService).follow,
    greet: () => create(FollowRequestSchema, { certificateRequest, listeners: reportedListeners() }),
    take(batch, controller) {
      take(batch);
      keep();
      if (batch.reset) log.info("apps follow", { controller, apps: apps.size });
      if (!batch.synced) return undefined;
      const served = batch.apps.map(({ appId, version }) => ({ appId, version }));
      return create(FollowRequestSchema, { served });
    },
    opened(say) {
      send = say;
    },
    ended() {
      send = undefined;
    },
    tell: (mail) => send?.(create(FollowRequestSchema, { mail })),
    get isConnected() {
      return send !== undefined;
    },
    get controllers() {
      return controllers;
    },
    async restore() {
      const state = await file.read();
      if (state !== undefined) take(state);
    },
    settled: () => writing,
  };
}
