import type { MessageInitShape } from "@bufbuild/protobuf";
import { MailServerFailure } from "@holdfast/egress/mail-server.ts";
import type { MailReportSchema } from "@holdfast/proto/holdfast/issuer/v1/issuer_pb.ts";
import type { App } from "../app.ts";
import { sendMail } from "./send-mail.ts";

type Report = MessageInitShape<typeof MailReportSchema>;

/** The limit that an app is at: that of addresses without a user, or that of all. */
export interface MailLimited {
  readonly forUsers: boolean;
}

/** Sends mails, and reports mail servers that take none, and apps at their limit, to controllers. */
export interface MailWatch {
  limited(app: App, limit: MailLimited): void;
  /** Who has room for mails again, of an app whose limit was reported. */
  found(app: App, room: "all" | "users" | "nobody"): void;
  /** Sends one that is owed. One that failed stays owed; it throws only when the database is away. */
  send(app: App, mailId: string, signal: AbortSignal): Promise<void>;
}

export interface MailWatchDeps {
  readonly tell: (report: Report) => void;
  readonly counted: (outcome: "sent" | "failed") => void;
  readonly monotonicMs: () => number;
}

/** One failure may be chance; what is owed is tried again soon. */
const failuresTold = 2;
/** A report is repeated until the app's configuration has it. */
const limitReportedAgainMs = 10_000;

export function createMailWatch({ tell, counted, monotonicMs }: MailWatchDeps): MailWatch {
  /** Failures of an app in a row. */
  const failures = new Map<string, number>();
  /** When an app's limit was reported last, by the app and the limit. */
  const reportedAt = new Map<string, number>();
  return {
    limited({ config: { appId, mailLimited, mailLimitedForUsers } }, { forUsers }) {
      const isReported = forUsers ? mailLimitedForUsers : mailLimited;
      const key = `${appId} ${forUsers}`;
      const beforeMs = monotonicMs() - (reportedAt.get(key) ?? Number.NEGATIVE_INFINITY);
      if (isReported || beforeMs < limitReportedAgainMs) return;
      reportedAt.set(key, monotonicMs());
      tell({ limits: [{ appId, forUsers }] });
    },
    found({ config: { appId, mailLimitedForUsers } }, room) {
      if (room === "all") tell({ belowLimit: [appId] });
      else if (room === "users" && mailLimitedForUsers) tell({ limits: [{ appId, forUsers: false }] });
    },
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
