import { MailServerFailure } from "@holdfast/egress/mail-server.ts";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { MailReportSchema } from "@holdfast/proto/holdfast/issuer/v1/issuer_pb.ts";
import type { App } from "../app.ts";
import { sendMail } from "./send-mail.ts";

type Report = MessageInitShape<typeof MailReportSchema>;

/** Sends mails, and tells controllers of mail servers that take none. */
export interface MailWatch {
  /** Sends one that is owed. One that failed stays owed; it throws only when the database is away. */
  send(app: App, mailId: string, signal: AbortSignal): Promise<void>;
}

export interface MailWatchDeps {
  readonly tell: (report: Report) => void;
  readonly counted: (outcome: "sent" | "failed") => void;
}

/** One failure may be chance; what is owed is tried again soon. */
const failuresTold = 2;

export function createMailWatch({ tell, counted }: MailWatchDeps): MailWatch {
  /** Failures of an app in a row. */
  const failures = new Map<string, number>();
  return {
    async send(app, mailId, signal) {
      const { appId, mailTrouble } = app.config;
      try {
        if (!(await sendMail(app, mailId, signal))) return;
      } catch (error) {
        if (signal.aborted || !(error instanceof MailServerFailure)) throw error;
        counted("failed");
        app.log.warn("mail not sent", { app: appId, reason: error.message });
        if (error.isOfRecipient) return;
        const count = (failures.get(appId) ?? 0) + 1;
        failures.set(appId, count);
        if (count >= failuresTold && !mailTrouble) tell({ troubles: [{ appId, reason: error.message }] });
        return;
      }
      counted("sent");
      failures.delete(appId);
      if (mailTrouble) tell({ working: [appId] });
    },
  };
}
