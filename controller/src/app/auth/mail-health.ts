import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { MailReport } from "@holdfast/proto/holdfast/issuer/v1/issuer_pb.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { Conflict, type UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { authKind, type AuthObject } from "./auth.ts";
import { mailFailing } from "./auth-events.ts";

/** Keeps what an issuer says of the mail servers of apps. What is lost here comes again with the next mail. */
export type HearOfMails = (report: MailReport) => Promise<void>;

interface Deps {
  readonly auths: Pick<Collection<AuthObject>, "fresh">;
  readonly begin: () => UnitOfWork;
  readonly log: Log;
}

const reasonMax = 300;

export function createHearOfMails({ auths, begin, log }: Deps): HearOfMails {
  async function put(appId: string, reason: string | null): Promise<void> {
    const stored = await auths.fresh(appId);
    if (stored === undefined || stored.object.status.state !== "Active") return;
    const { status } = stored.object;
    if ((status.mailTrouble === null) === (reason === null)) return;
    const after = { ...stored.object, status: { ...status, mailTrouble: reason } };
    const unit = begin();
    unit.update(authKind, stored, after);
    if (reason !== null) unit.event(mailFailing(after, reason));
    await unit.commit();
    log.info("mails of an app", { app: appId, failing: reason !== null });
  }

  return async ({ troubles, working }) => {
    const said = [
      ...troubles.map(({ appId, reason }) => [appId, reason.slice(0, reasonMax)] as const),
      ...working.map((appId) => [appId, null] as const),
    ];
    for (const [appId, reason] of said)
      await put(appId, reason).catch((error: unknown) => {
        if (!(error instanceof Conflict || error instanceof HoldfastError)) throw error;
      });
  };
}
