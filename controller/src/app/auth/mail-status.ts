import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { MailReport } from "@holdfast/proto/holdfast/issuer/v1/issuer_pb.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { Conflict, type UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { authKind, type AuthObject, type AuthStatus } from "./auth.ts";
import { mailFailing } from "./auth-events.ts";

/** Records reports of issuers about apps' mail servers. A lost report is repeated with the next mail. */
export type RecordMailStatus = (report: MailReport) => Promise<void>;

interface Deps {
  readonly auths: Pick<Collection<AuthObject>, "getCurrent">;
  readonly begin: () => UnitOfWork;
  readonly log: Log;
}

type MailStatus = Partial<Pick<AuthStatus, "mailError" | "mailLimit">>;

const reasonMax = 300;

export function createMailStatusRecorder({ auths, begin, log }: Deps): RecordMailStatus {
  async function put(appId: string, change: MailStatus): Promise<void> {
    const stored = await auths.getCurrent(appId);
    if (stored === undefined || stored.object.status.state !== "Active") return;
    const { status } = stored.object;
    const { mailError: reason = status.mailError, mailLimit = status.mailLimit } = change;
    const fails = reason !== null && status.mailError === null;
    if ((status.mailError === null) === (reason === null) && status.mailLimit === mailLimit) return;
    const after = { ...stored.object, status: { ...status, mailError: reason, mailLimit } };
    const unit = begin();
    unit.update(authKind, stored, after);
    if (fails) unit.event(mailFailing(after, reason));
    await unit.commit();
    log.info("mail status of an app changed", { app: appId, failing: reason !== null, limit: mailLimit ?? "none" });
  }

  return async ({ troubles, working, limits, belowLimit }) => {
    const changes: { readonly appId: string; readonly change: MailStatus }[] = [
      ...troubles.map(({ appId, reason }) => ({ appId, change: { mailError: reason.slice(0, reasonMax) } })),
      ...working.map((appId) => ({ appId, change: { mailError: null } })),
      ...limits.map(({ appId, forUsers }) => ({
        appId,
        change: { mailLimit: forUsers ? ("everybody" as const) : ("strangers" as const) },
      })),
      ...belowLimit.map((appId) => ({ appId, change: { mailLimit: null } })),
    ];
    for (const { appId, change } of changes)
      await put(appId, change).catch((error: unknown) => {
        if (!(error instanceof Conflict || error instanceof HoldfastError)) throw error;
      });
  };
}
